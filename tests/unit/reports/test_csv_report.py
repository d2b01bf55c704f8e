"""CSV, read back by the standard library's reader."""

from __future__ import annotations

import csv
import io

from profiler.model.comparison import MetricComparison, Verdict
from profiler.model.interval import Interval
from profiler.model.shares import ShareIntervals
from reports.arm_report import ArmReport
from reports.csv_report import render_comparison_csv, render_report_csv
from support.report_values import MS, arm_costs, comparison, comparison_row, cost_table, no_intervals

HOSTILE = 'a,"b"\nc;d|e'


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_report() -> None:
    intervals = ShareIntervals("category", "t", (Interval(0.5, 0.75), Interval(0.25, 0.5)))
    rows = read(
        render_report_csv(ArmReport(arm_costs([cost_table({HOSTILE: [60, 70], "other": [40, 30]})]), "category", intervals))
    )
    assert rows[0] == {
        "name": HOSTILE, "label": HOSTILE, "self": "130000000", "total": "130000000", "unit": "ns", "share": "0.65",
        "share_low": "0.5", "share_high": "0.75", "samples": "130", "runs": "2",
    }  # fmt: skip
    assert sum(int(row["self"]) for row in rows) == 200 * MS


def test_all_rows_unless_limited() -> None:
    costs = arm_costs([cost_table({f"row {number:03}": [500 - number] for number in range(300)})])
    assert len(read(render_report_csv(ArmReport(costs, "category", no_intervals())))) == 300
    limited = read(render_report_csv(ArmReport(costs, "category", no_intervals(), limit=2)))
    assert [row["name"] for row in limited] == ["row 000", "row 001", "other rows (298)"]
    assert limited[2]["total"] == ""


def test_comparison() -> None:
    row = comparison_row(
        "SHA-256", [2 * MS, 4 * MS], [1 * MS, 2 * MS], Verdict.FASTER, (-2.5 * MS, -0.5 * MS), (-0.75, -0.25), p=0.25
    )
    total = comparison_row("total", [2 * MS, 4 * MS], [1 * MS, 2 * MS])
    rate = MetricComparison("", comparison_row("rate", [0.5, 0.5], [0.25, 0.25]))
    lines = read(render_comparison_csv(comparison([row], total, [rate])))
    assert [(line["kind"], line["name"], line["unit"]) for line in lines] == [
        ("row", "SHA-256", "ns"), ("total", "total", "ns"), ("metric", "rate", ""),
    ]  # fmt: skip
    first = lines[0]
    assert [first[name] for name in ("baseline", "candidate", "delta", "delta_low", "delta_high")] == [
        "3000000", "1500000", "-1500000", "-2500000", "-500000",
    ]  # fmt: skip
    assert [first[name] for name in ("relative", "relative_low", "relative_high", "p", "verdict")] == [
        "-0.5", "-0.75", "-0.25", "0.25", "faster",
    ]  # fmt: skip
    assert (first["baseline_median"], first["baseline_minimum"], first["baseline_maximum"]) == ("3000000", "2000000", "4000000")
    assert lines[2]["p"] == ""
    assert lines[2]["candidate"] == "0.25"
