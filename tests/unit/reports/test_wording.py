"""Verdicts and effects in words, written by hand."""

from __future__ import annotations

from dataclasses import replace

from profiler.model.comparison import ComparisonRow, ProfilingCost, Verdict
from reports.quantities import Scale, scale_for
from reports.wording import (
    Terms,
    delta_text,
    effect_text,
    interval_text,
    method_line,
    profiling_cost_text,
    relative_change,
    relative_interval,
    result_sentence,
    verdict_text,
    verdict_word,
)
from support.report_values import MS, comparison, comparison_row

MILLISECONDS = scale_for([100 * MS], "ns")


def text_of(row: ComparisonRow, margin: float = 0.01, is_part: bool = False) -> str:
    return verdict_text(row, Terms(MILLISECONDS, "ns", margin, is_part))


def word_of(row: ComparisonRow, unit: str) -> str:
    return verdict_word(row, Terms(MILLISECONDS, unit, 0.01))


def test_only_time_gets_faster() -> None:
    faster = comparison_row("x", [2, 2, 2], [1, 1, 1], Verdict.FASTER)
    slower = comparison_row("x", [1, 1, 1], [2, 2, 2], Verdict.SLOWER)
    assert [word_of(row, "ns") for row in (faster, slower)] == ["faster", "slower"]
    assert [word_of(row, "page-faults") for row in (faster, slower)] == ["lower", "higher"]
    assert [word_of(row, "") for row in (faster, slower)] == ["lower", "higher"]


def test_no_difference_names_the_margin() -> None:
    row = comparison_row("x", [1, 1, 1], [1, 1, 1], Verdict.EQUIVALENT)
    assert text_of(row) == "no difference beyond 1 %"
    assert text_of(row, margin=0.025) == "no difference beyond 2.5 %"
    assert text_of(row, is_part=True) == "no difference beyond 1 % of the total"


def test_noise_says_what_these_runs_could_have_shown() -> None:
    row = comparison_row("x", [1, 2, 3], [1, 2, 4], Verdict.UNDECIDED, visible_effect=3.14159 * MS, runs_needed=24)
    assert text_of(row) == "inside noise (visible from ±3.1 ms, 24 runs per arm to decide the effect seen)"
    bare = comparison_row("x", [1, 2, 3], [1, 2, 4], Verdict.UNDECIDED)
    assert text_of(bare) == "inside noise"


def test_too_few_runs_and_single_runs() -> None:
    assert text_of(comparison_row("x", [1, 2], [1, 2], Verdict.TOO_FEW_RUNS)) == "too few runs"
    assert text_of(comparison_row("x", [1], [2], Verdict.TOO_FEW_RUNS)) == "one run: no interval"


def test_what_cannot_be_compared_says_why() -> None:
    row = comparison_row("x", [1, 2], [1, 2], Verdict.UNTESTABLE, note="debug info differs")
    assert text_of(row) == "not comparable; debug info differs"


def test_relative_change() -> None:
    def change(before: float, after: float) -> str:
        return relative_change(comparison_row("x", [before], [after]))

    assert change(100, 87.7) == "-12.3 %"
    assert change(100, 104.96) == "+5.0 %"
    assert change(100, 100) == "0.0 %"
    assert change(100, 200) == "+100.0 %"
    assert change(100, 201) == "x2.0 up"
    assert change(100, 2316) == "x23 up"
    assert change(100, 50) == "-50.0 %"
    assert change(100, 2.1) == "x48 down"
    assert change(100, 0) == "gone"
    assert change(0, 5) == "new"
    assert change(0, 0) == ""


def test_relative_interval() -> None:
    row = comparison_row("x", [100, 100], [87, 89], relative_interval=(-0.141, -0.104))
    assert relative_interval(row) == "[-14.1, -10.4] %"
    factor = comparison_row("x", [100, 100], [310, 330], relative_interval=(2.0, 2.4))
    assert relative_interval(factor) == "[x3.0 up to x3.4 up]"
    assert relative_interval(comparison_row("x", [1], [2])) == ""


def test_differences_are_rounded_to_their_interval() -> None:
    row = comparison_row("x", [500 * MS], [343.7123 * MS], delta_interval=(-160.1 * MS, -152.5 * MS))
    assert delta_text(row, MILLISECONDS) == "-156.3"
    assert interval_text(row.delta_interval, MILLISECONDS) == "[-160.1, -152.5]"
    wide = comparison_row("x", [500 * MS], [343.7123 * MS], delta_interval=(-206 * MS, -106 * MS))
    assert effect_text(wide, MILLISECONDS) == "-156 ms [-206, -106], -31.3 %"
    assert effect_text(comparison_row("x", [10 * MS], [11 * MS]), MILLISECONDS) == "+1.0 ms, +10.0 %"


def test_result_sentence() -> None:
    rows = [
        comparison_row("SHA-256", [500 * MS] * 3, [400 * MS] * 3, Verdict.FASTER, delta_interval=(-110 * MS, -90 * MS)),
        comparison_row("malloc", [30 * MS] * 3, [31 * MS] * 3, Verdict.SLOWER, delta_interval=(0.8 * MS, 1.2 * MS)),
        comparison_row("noise", [300 * MS] * 3, [900 * MS] * 3, Verdict.UNDECIDED),
    ]
    total = comparison_row(
        "total", [830 * MS] * 3, [731 * MS] * 3, Verdict.FASTER, delta_interval=(-110 * MS, -88 * MS), p=0.00012
    )
    result = comparison(rows, total)
    sentence = result_sentence(result.candidates[0], "base", Terms(scale_for([830 * MS], "ns"), "ns", 0.01))
    assert sentence == (
        "cand against base: total -99 ms [-110, -88], -11.9 %, p = 0.0001: faster. "
        "Largest change: SHA-256 -100 ms [-110, -90], -20.0 %."
    )


def test_method_line() -> None:
    several = comparison([], comparison_row("total", [1, 2, 3], [1, 2, 3]))
    assert method_line(several.candidates[0], 3) == (
        "3 runs against 3 runs, paired t, 0 rows tested, p adjusted by Holm, intervals 95 % unadjusted"
    )
    # Four runs per arm, of which one of either failed, in different rounds.
    assert method_line(replace(several.candidates[0], runs=4), 4) == (
        "4 runs against 4 runs, paired t over the 3 rounds of both, 0 rows tested, p adjusted by Holm, "
        "intervals 95 % unadjusted"
    )
    single = comparison([], comparison_row("total", [1], [2]))
    assert method_line(single.candidates[0], 1) == "1 run against 1 run: no interval, differences as measured"


def test_profiling_cost() -> None:
    assert profiling_cost_text(ProfilingCost("base", 1.0212)) == "profiling base took 2.1 % more CPU time than its plain runs"
    assert profiling_cost_text(ProfilingCost("base", 0.995)) == "profiling base took 0.5 % less CPU time than its plain runs"


def test_scale_without_unit_leaves_no_blank() -> None:
    row = comparison_row("x", [1.0, 2.0], [1.5, 2.5], Verdict.UNDECIDED, visible_effect=0.25)
    assert verdict_text(row, Terms(Scale("", 1.0, 2), "", 0.01)) == "inside noise (visible from ±0.25)"
