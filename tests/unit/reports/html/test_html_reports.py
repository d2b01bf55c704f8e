"""Reports as HTML: hand-written values whose numbers can be added up by eye."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

from profiler.model.comparison import MetricComparison, Verdict
from profiler.model.costs import ArmCosts, MissingSymbols, OtherFunction, OwnerCell
from profiler.model.interval import Interval
from profiler.model.quality import ReportWarning
from profiler.model.shares import ShareIntervals
from reports.arm_report import ArmReport
from reports.comparison_report import ComparisonReport
from reports.html.html_comparison import render_comparison_html
from reports.html.html_report import render_report_html
from support.report_values import MS, arm_costs, comparison, comparison_row, cost_table, no_intervals

HOSTILE = "a<b>&'\"\u202e</bdi>"


class Tables(HTMLParser):
    """``rows``: the cells of every table's body, by caption; ``text``: all of the piece's text."""

    def __init__(self, piece: str) -> None:
        super().__init__()
        self.rows: dict[str, list[list[str]]] = {}
        self.text = ""
        self._caption = ""
        self._within: list[str] = []
        self.feed(piece)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._within.append(tag)
        if tag == "tr" and "tbody" in self._within:
            self.rows[self._caption].append([])
        if tag in ("th", "td") and "tbody" in self._within:
            self.rows[self._caption][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        while self._within.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._within and self._within[-1] == "caption":
            self._caption = data
            self.rows[data] = []
        elif "tbody" in self._within:
            self.rows[self._caption][-1][-1] += data


def report(costs: ArmCosts, limit: int = 0) -> ArmReport:
    return ArmReport(costs, "category", no_intervals(), limit)


def test_a_report_of_two_runs() -> None:
    """hash 30 + 50, tree 10 + 10 of 100 ms: per run 40 and 10; shares 80 and 20 %."""
    costs = arm_costs([cost_table({"hash": (30, 50), "tree": (10, 10)})])
    shares = ShareIntervals("category", "t", (Interval(0.7, 0.9), Interval(0.1, 0.3)))
    tables = Tables(render_report_html(replace(report(costs), shares=shares))).rows
    assert tables["Where the time went, by category"] == [
        ["hash", "40.0", "40.0", "80.0 %", "70.0 to 90.0 %", "80"],
        ["tree", "10.0", "10.0", "20.0 %", "10.0 to 30.0 %", "20"],
        ["other", "0.0", "0.0", "0.0 %", "", "0"],
        ["total", "50.0", "50.0", "100.0 %", "", "100"],
    ]


def test_a_limit_adds_the_rest_up() -> None:
    costs = arm_costs([cost_table({"a": (60,), "b": (30,), "c": (10,)})])
    rows = Tables(render_report_html(report(costs, 1))).rows["Where the time went, by category"]
    assert [row[:2] for row in rows] == [["a", "60.0"], ["other", "0.0"], ["other rows (2)", "40.0"], ["total", "100.0"]]


def test_everything_that_is_said_of_an_arm() -> None:
    costs = arm_costs(
        [cost_table({HOSTILE: (60,), "memmove": (40,)})],
        name=HOSTILE,
        owners=(OwnerCell("memmove", "tree update", 40 * MS),),
        other_functions=(OtherFunction(HOSTILE, 5 * MS, "[[rule]]\ncategory = 'x'"),),
        missing=(MissingSymbols("/opt/lib.so", "ab12", 0.05, "no such file"),),
        warnings=(ReportWarning("lost-samples", HOSTILE, "record less"),),
    )
    piece = render_report_html(report(costs))
    shown = Tables(piece)
    assert "\u202e" not in piece
    assert HOSTILE.replace("\u202e", "\\u202e") in shown.text
    assert shown.rows["Where the time went, by category"][0][0] == HOSTILE.replace("\u202e", "\\u202e")
    for said in (
        "memmove 40.0 %: 40.0 tree update",
        "lost-samples: a<b>",
        "(record less)",
        "[[rule]]\ncategory = 'x'",
        "5.0 % /opt/lib.so (build ID ab12): no such file",
        "build ID 00aabb",
        "host node-1, Some CPU, 6.1.0",
        "/opt/bin/epoch --count '4 096'",
    ):
        assert said in shown.text, said


def test_what_has_no_names_is_said_before_the_table() -> None:
    bad = arm_costs([cost_table({"other": (100,)})], missing=(MissingSymbols("/opt/bin/epoch", "", 0.9, "stripped"),))
    costs = replace(bad, quality=replace(bad.quality, unresolved=0.9))
    piece = render_report_html(report(costs))
    assert piece.startswith('<div class="notice" role="note"><p>WARNING: 90.0 % of the weight has no function name')
    assert piece.count("/opt/bin/epoch (build ID not recorded)") == 1


def test_a_comparison_of_two_runs_each() -> None:
    """hash 100 and 102 to 80 and 82: 101 to 81 ms, -20 ms; rows add up to the total."""
    hashing = comparison_row(
        "hash", (100 * MS, 102 * MS), (80 * MS, 82 * MS), Verdict.FASTER, (-22 * MS, -18 * MS), (-0.22, -0.18), 0.001
    )
    tree = comparison_row("tree<>", (10 * MS, 10 * MS), (10 * MS, 10 * MS), Verdict.EQUIVALENT)
    total = comparison_row("total", (110 * MS, 112 * MS), (90 * MS, 92 * MS), Verdict.FASTER, (-22 * MS, -18 * MS), p=0.002)
    wall = MetricComparison("ns", comparison_row("wall", (200 * MS, 202 * MS), (190 * MS, 192 * MS), Verdict.UNDECIDED))
    made = comparison([hashing, tree], total, [wall], names=("base", HOSTILE))
    piece = render_comparison_html(ComparisonReport(made))
    shown, name = Tables(piece), HOSTILE.replace("\u202e", "\\u202e")
    rows = shown.rows[f"{name} against base, by category"]
    assert rows[0] == ["hash", "101.0", "81.0", "-20.0", "[-22.0, -18.0]", "-19.8 %", "0.0010", "faster"]
    assert [row[:4] for row in rows[1:]] == [["tree<>", "10.0", "10.0", "0.0"], ["total", "111.0", "91.0", "-20.0"]]
    assert shown.rows[f"{name} against base, times and metrics"][0][:5] == ["wall", "ms", "201.0", "191.0", "-10.0"]
    assert "base: 100.0, 102.0" in shown.text
    # What was decided is to be seen: hash and the total, not tree and wall.
    assert piece.count('class="decided"') + piece.count('class="total decided"') == 2
