"""JSON documents against schemas written from their description."""

from __future__ import annotations

import json
import math

import jsonschema

from profiler.model.comparison import MetricComparison, Verdict
from profiler.model.costs import MissingSymbols
from profiler.model.interval import Interval
from profiler.model.quality import ReportWarning
from profiler.model.shares import ShareIntervals
from reports.arm_report import ArmReport
from reports.json_report import render_comparison_json, render_report_json
from support import report_schemas
from support.report_values import MS, arm_costs, comparison, comparison_row, cost_table, no_intervals

HOSTILE = "a\x1b\n\udcff\"'|é"


def test_report() -> None:
    costs = arm_costs(
        [cost_table({"SHA-256": [60, 70], "other": [40, 30]})], warnings=(ReportWarning("code", "message", "advice"),)
    )
    intervals = ShareIntervals("category", "t", (Interval(0.5, 0.75), Interval(0.25, 0.5)))
    document = json.loads(render_report_json(ArmReport(costs, "category", intervals)))
    jsonschema.validate(document, report_schemas.REPORT)
    assert document["rows"] == [
        {"name": "SHA-256", "self": 130 * MS, "total": 130 * MS, "share": 0.65, "share_interval": [0.5, 0.75], "samples": 130},
        {"name": "other", "self": 70 * MS, "total": 70 * MS, "share": 0.35, "share_interval": [0.25, 0.5], "samples": 70},
    ]
    assert (document["event"], document["unit"], document["view"], document["total"]) == ("cpu-clock", "ns", "leaf", 200 * MS)
    assert document["quality"]["runs"] == 2
    assert document["quality"]["complete"] == 1
    assert document["warnings"] == [{"code": "code", "message": "message", "advice": "advice"}]


def test_weights_beyond_2_to_the_53_stay_exact() -> None:
    table = cost_table({"main": [9_007_199_255]})  # 9007199255 ms in ns is above 2^53
    document = json.loads(render_report_json(ArmReport(arm_costs([table]), "category", no_intervals())))
    assert document["total"] == 9_007_199_255_000_000
    assert document["rows"][0]["self"] == 9_007_199_255_000_000


def test_hostile_names_give_valid_utf8() -> None:
    costs = arm_costs([cost_table({HOSTILE: [1]})], missing=(MissingSymbols(HOSTILE, "", 0.5, HOSTILE),))
    data = render_report_json(ArmReport(costs, "category", no_intervals())).encode("utf-8")
    document = json.loads(data)
    jsonschema.validate(document, report_schemas.REPORT)
    assert document["rows"][0]["name"] == "a\x1b\n\\xff\"'|é"


def test_no_samples_is_a_document_too() -> None:
    document = json.loads(render_report_json(ArmReport(arm_costs([cost_table({"other": [0]})]), "category", no_intervals())))
    jsonschema.validate(document, report_schemas.REPORT)
    assert (document["total"], document["rows"][0]["share"]) == (0, 0)


def test_comparison() -> None:
    row = comparison_row(
        "SHA-256", [2 * MS, 4 * MS], [1 * MS, 2 * MS], Verdict.FASTER, (-2.5 * MS, -0.5 * MS), (-0.75, -0.25), p=0.25
    )
    new = comparison_row("new", [0, 0], [1, 2], Verdict.UNTESTABLE)
    total = comparison_row("total", [2 * MS, 4 * MS], [1 * MS + 1, 2 * MS + 2], Verdict.FASTER)
    wall = MetricComparison("ns", comparison_row("wall", [3.5, 4.5], [3.5, 4.5], Verdict.EQUIVALENT))
    document = json.loads(render_comparison_json(comparison([row, new], total, [wall])))
    jsonschema.validate(document, report_schemas.COMPARE)
    assert document["baseline"] == {"name": "base", "runs": 2}
    candidate = document["candidates"][0]
    assert (candidate["name"], candidate["runs"], candidate["test"], candidate["family"]) == ("cand", 2, "paired t", 2)
    assert candidate["rows"][0] == {
        "name": "SHA-256",
        "baseline": 3 * MS,
        "candidate": 1_500_000,
        "delta": -1_500_000,
        "delta_interval": [-2_500_000, -500_000],
        "relative": -0.5,
        "relative_interval": [-0.75, -0.25],
        "p": 0.25,
        "p_adjusted": 0.25,
        "verdict": "faster",
        "sigma": None,
        "no_overlap": False,
        "permutation_p": None,
        "values": {"baseline": [2 * MS, 4 * MS], "candidate": [MS, 2 * MS]},
    }
    assert candidate["rows"][1]["relative"] is None
    assert candidate["metrics"][0]["unit"] == "ns"
    assert candidate["metrics"][0]["values"] == {"baseline": [3.5, 4.5], "candidate": [3.5, 4.5]}
    assert sum(row["delta"] for row in candidate["rows"]) == candidate["total"]["delta"]


def test_whole_numbers_are_written_as_integers() -> None:
    text = render_comparison_json(comparison([], comparison_row("total", [3e9, 3e9], [2e9, 2e9])))
    assert '"baseline": 3000000000,' in text
    assert ".0" not in text


def test_neither_nan_nor_infinity_is_written() -> None:
    row = comparison_row("x", [1.0], [math.inf], p=math.nan, delta_interval=(-math.inf, math.inf))
    document = json.loads(render_comparison_json(comparison([row], row)), parse_constant=lambda name: 1 / 0)
    jsonschema.validate({**document, "candidates": []}, report_schemas.COMPARE)
    assert document["candidates"][0]["rows"][0]["candidate"] is None
    assert document["candidates"][0]["rows"][0]["delta_interval"] == [None, None]
