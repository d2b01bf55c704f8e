"""The report of an arm on a terminal: whole texts written by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.cells import cell_len

from profiler.model.costs import MissingSymbols, OtherFunction, OwnerCell
from profiler.model.interval import Interval
from profiler.model.quality import ReportWarning
from profiler.model.run import Metric, RunMode, RunOutcome
from profiler.model.shares import ShareIntervals
from reports.arm_report import ArmReport, report_rows
from reports.terminal_report import render_report
from reports.terminal_table import TerminalStyle
from support.report_values import GOOD_QUALITY, MS, arm_costs, cost_table, no_intervals, run_info

ROWS = {"SHA-256": [500], "tree iteration": [300], "memmove": [67], "other": [133]}
HOSTILE = "a\x1b[31m\n<b>[red]|`@x\udcff"


def test_one_run() -> None:
    intervals = ShareIntervals(
        "category", "by hand", (Interval(0.46, 0.54), Interval(0.27, 0.33), Interval(0, 0.1), Interval(0.1, 0.2))
    )
    costs = arm_costs(
        [cost_table(ROWS)],
        owners=(
            OwnerCell("memmove", "SSZ", 15 * MS),
            OwnerCell("memmove", "tree update", 41 * MS),
            OwnerCell("memmove", "memmove", 11 * MS),
            OwnerCell("SHA-256", "SHA-256", 500 * MS),
        ),
        other_functions=(OtherFunction("app::loop", 100 * MS, 'function = "^app::loop$"'),),
        warnings=(ReportWarning("lost-samples", "3 % of the samples were lost", "record at a lower rate"),),
    )
    assert render_report(ArmReport(costs, "category", intervals), TerminalStyle(100)) == (
        "base: 1,000.0 ms, 1 run, event cpu-clock\n"
        "by category, leaf view, rules ethereum+native\n"
        "quality ok: 1,000 samples, 100.0 % complete stacks\n"
        "\n"
        "category             ms    share   95 % interval  samples\n"
        "SHA-256           500.0   50.0 %  46.0 to 54.0 %      500\n"
        "tree iteration    300.0   30.0 %  27.0 to 33.0 %      300\n"
        "memmove            67.0    6.7 %   0.0 to 10.0 %       67\n"
        "other             133.0   13.3 %  10.0 to 20.0 %      133\n"
        "total           1,000.0  100.0 %                    1,000\n"
        "\n"
        "memmove 6.7 %: 4.1 tree update, 1.5 SSZ, 1.1 memmove\n"
        "\n"
        "other is mostly these functions; a rule line that would catch each:\n"
        "  100.0 ms  10.0 %  app::loop\n"
        '    function = "^app::loop$"\n'
        "\n"
        "warning lost-samples: 3 % of the samples were lost (record at a lower rate)\n"
    )


def test_several_runs_show_means_and_the_program_s_own_figures() -> None:
    infos = (
        run_info(metrics=(Metric("epoch", 100 * MS, "ns"), Metric("count", 3, ""))),
        run_info(metrics=(Metric("epoch", 110 * MS, "ns"),)),
    )
    costs = arm_costs(
        [cost_table({"SHA-256": [60, 80], "other": [40, 20]})],
        infos=infos,
        failed=(run_info(failure="exit code 1"),),
        phase="phase::hash",
        phase_windows_ns=[98 * MS, 104 * MS],
    )
    assert render_report(ArmReport(costs, "category", no_intervals()), TerminalStyle(80)) == (
        "base: 100.0 ms per run, 2 runs, event cpu-clock\n"
        "1 failed run left out: exit code 1\n"
        "by category, leaf view, rules ethereum+native\n"
        "phase 'phase::hash': 101.0 ms of wall time per run; the program reports epoch\n"
        "  105.0 ms\n"
        "quality ok: 1,000 samples, 100.0 % complete stacks\n"
        "\n"
        "category  ms/run    share  samples\n"
        "SHA-256     70.0   70.0 %      140\n"
        "other       30.0   30.0 %       60\n"
        "total      100.0  100.0 %      200\n"
    )


@pytest.mark.parametrize(
    ("metrics", "shown"),
    [
        ((Metric("epoch", 30 * MS, "ns", (20 * MS, 40 * MS)),) * 2, "epoch 30.0 ms (2 times per run)"),
        ((Metric("epoch", 60 * MS, "ns", (20 * MS, 40 * MS)),) * 2, "epoch 60.0 ms"),
        ((Metric("epoch", 30 * MS, "ns", (30 * MS,)),) * 2, "epoch 30.0 ms"),
        (
            (Metric("epoch", 30 * MS, "ns", (20 * MS, 40 * MS)), Metric("epoch", 30 * MS, "ns", (30 * MS,) * 3)),
            "epoch 30.0 ms (several times per run)",
        ),
    ],
)
def test_a_metric_found_several_times_in_a_run_is_no_total(metrics: tuple[Metric, ...], shown: str) -> None:
    infos = tuple(run_info(metrics=(metric,)) for metric in metrics)
    costs = arm_costs([cost_table({"other": [1, 1]})], infos=infos, phase="p", phase_windows_ns=[60 * MS, 60 * MS])
    assert f"; the program reports {shown}\n" in render_report(ArmReport(costs, "category", no_intervals()), TerminalStyle(120))


def test_runs_without_perf_are_the_headline_times() -> None:
    outcomes = (RunOutcome(wall_ns=90 * MS, user_ns=70 * MS, system_ns=10 * MS), RunOutcome(wall_ns=110 * MS, user_ns=80 * MS))
    plain = tuple(replace(run_info(mode=RunMode.PLAIN), outcome=outcome) for outcome in outcomes)
    report = ArmReport(arm_costs([cost_table({"other": [50]})], plain=plain), "category", no_intervals())
    assert render_report(report, TerminalStyle(100)).splitlines()[1] == (
        "without perf, 2 runs: wall 100.0 ms, CPU 80.0 ms on average"
    )


def test_functions_show_self_and_total() -> None:
    table = cost_table({"leaf": [30], "main": [10]}, "function", totals={"leaf": [30], "main": [40]})
    text = render_report(ArmReport(arm_costs([table]), "function", no_intervals("function")), TerminalStyle(80))
    assert text.split("\n\n")[1] == (
        "function  self ms    share  total ms  samples\n"
        "leaf         30.0   75.0 %      30.0       30\n"
        "main         10.0   25.0 %      40.0       10\n"
        "total        40.0  100.0 %                 40\n"
    )


def test_missing_symbols_come_before_the_table() -> None:
    quality = replace(GOOD_QUALITY, status="warn", unresolved=0.34)
    missing = (
        MissingSymbols("/opt/lib/libx.so", "00aabb", 0.3, "/opt/lib/libx.so: no such file (build ID 00aabb)"),
        MissingSymbols("[vdso]", "", 0.04, "no image"),
    )
    costs = arm_costs([cost_table(ROWS)], quality=quality, missing=missing)
    text = render_report(ArmReport(costs, "category", no_intervals()), TerminalStyle(120))
    assert text.split("\n\n")[1] == (
        "WARNING: 34.0 % of the weight has no function name; do not trust the table below.\n"
        "  30.0 % /opt/lib/libx.so (build ID 00aabb): no such file\n"
        "  4.0 % [vdso] (build ID not recorded): no image\n"
        "  What to do: bring the files with these build IDs (or their debug files) to this machine and name their folder with\n"
        "    --debug-dir, or run the report where the program was recorded."
    )


def test_a_share_of_20_percent_is_not_yet_a_warning() -> None:
    costs = arm_costs([cost_table(ROWS)], quality=replace(GOOD_QUALITY, unresolved=0.2))
    text = render_report(ArmReport(costs, "category", no_intervals()), TerminalStyle(100))
    assert "WARNING" not in text
    assert "20.0 % unresolved" in text


def test_a_limit_sums_up_the_rest_but_never_other() -> None:
    table = cost_table({"a": [50], "b": [20], "c": [15], "d": [10], "other": [5]})
    rows = report_rows(ArmReport(arm_costs([table]), "category", no_intervals(), limit=2))
    assert [(row.name, row.self_weight // MS, row.samples) for row in rows] == [
        ("a", 50, 50), ("b", 20, 20), ("other", 5, 5), ("other rows (2)", 25, 25),
    ]  # fmt: skip
    assert sum(row.self_weight for row in rows) == 100 * MS
    one_more = report_rows(ArmReport(arm_costs([table]), "category", no_intervals(), limit=3))
    assert [row.name for row in one_more] == ["a", "b", "c", "d", "other"]


def test_other_is_printed_even_when_it_is_empty() -> None:
    report = ArmReport(arm_costs([cost_table({"a": [50]})]), "category", no_intervals())
    assert "\nother      0.0    0.0 %        0\n" in render_report(report, TerminalStyle(80))
    assert [row.name for row in report_rows(report, with_empty_other=False)] == ["a"]


def test_no_samples_at_all() -> None:
    report = ArmReport(arm_costs([cost_table({"other": [0]})]), "category", no_intervals())
    text = render_report(report, TerminalStyle(80))
    assert "\ntotal      0  0.0 %        0\n" in text
    assert "nan" not in text


def test_counts_are_not_called_time() -> None:
    costs = arm_costs([cost_table(ROWS)], unit="page-faults", event="page-faults")
    text = render_report(ArmReport(costs, "category", no_intervals()), TerminalStyle(80))
    assert text.startswith("base: 1,000.0 M page-faults, 1 run, event page-faults\n")
    assert " ms" not in text


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_hostile_names_at_any_width(width: int) -> None:
    names = {HOSTILE: [50], "x" * 400: [30], "木" * 90: [20]}
    costs = arm_costs([cost_table(names)], name=HOSTILE, warnings=(ReportWarning("w", HOSTILE, HOSTILE),))
    text = render_report(ArmReport(costs, "category", no_intervals()), TerminalStyle(width))
    assert "\x1b" not in text
    text.encode("utf-8")
    table = text.split("\n\n")[1]
    assert len(table.splitlines()) == 6  # header, three names, other, total
    assert max(cell_len(line) for line in table.splitlines()) <= width
