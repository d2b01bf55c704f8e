"""Limits of `compare --fail-on`: the whole interval must lie beyond."""

from __future__ import annotations

import argparse
from dataclasses import replace

import pytest

from profiler.cli.fail_on import CheckedLimits, Limit, check_conditions, exceeded, parse_limit, undecidable
from profiler.errors import UsageError
from profiler.model.comparison import Comparison, MetricComparison
from support.report_values import comparison, comparison_row


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("5", Limit("total", 0.05)),
        ("2.5%", Limit("total", 0.025)),
        ("0", Limit("total", 0.0)),
        ("memmove:2", Limit("memmove", 0.02)),
        ("std::vector::push_back:10 %", Limit("std::vector::push_back", 0.1)),
    ],
)
def test_parse(text: str, limit: Limit) -> None:
    assert parse_limit(text) == limit


@pytest.mark.parametrize("text", ["", "x", "-1", "nan", "inf", ":5", "memmove:", "memmove:x"])
def test_parse_refuses(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        parse_limit(text)


def result(total_interval: tuple[float, float] | None) -> Comparison:
    total = comparison_row("total", [100, 100], [107, 107], relative_interval=total_interval)
    row = comparison_row("a::b", [10, 10], [20, 20], relative_interval=(0.8, 1.2), label="a::b<int>")
    wall = MetricComparison("ns", comparison_row("wall", [10, 10], [9, 9], relative_interval=(-0.2, 0.3)))
    return comparison([row], total, [wall])


@pytest.mark.parametrize(
    ("limit", "is_exceeded"),
    [
        (Limit("total", 0.049), True),
        (Limit("total", 0.05), False),  # the interval starts at the limit, not beyond
        (Limit("total", 0.06), False),  # inside the interval
        (Limit("total", 0.1), False),
        (Limit("a::b", 0.5), True),
        (Limit("a::b<int>", 0.5), True),
        (Limit("wall", 0.0), False),
    ],
)
def test_the_whole_interval_must_be_beyond(limit: Limit, is_exceeded: bool) -> None:
    assert bool(exceeded(result((0.05, 0.09)), [limit])) is is_exceeded


def test_messages() -> None:
    (broken,) = exceeded(result((0.05, 0.09)), [Limit("total", 0.01)])
    assert broken == "cand: total rose by at least 5.00 %, more than 1 %"
    assert undecidable(result(None), [Limit("total", 0.01)]) == [
        "--fail-on total: cand has no interval (needs 2 runs per arm and a baseline above 0): not checked"
    ]
    assert exceeded(result(None), [Limit("total", 0.01)]) == []


def test_an_unknown_row_lists_the_nearest() -> None:
    with pytest.raises(UsageError, match="no row or metric 'walk' in this comparison; nearest: wall"):
        exceeded(result((0.05, 0.09)), [Limit("walk", 0.01)])


def test_a_row_that_one_candidate_lacks_is_not_checked_there() -> None:
    whole = result((0.05, 0.09))
    (first,) = whole.candidates
    other = replace(first, name="other", rows=())
    limits = [Limit("a::b", 2.0), Limit("total", 0.2)]
    assert undecidable(whole, limits) == []
    assert undecidable(replace(whole, candidates=(first, other)), limits) == [
        "--fail-on a::b: other has no such row: not checked"
    ]


def under_load(metric: str, interval: tuple[float, float]) -> Comparison:
    total = comparison_row("total", [100, 100], [100, 100], relative_interval=(-0.01, 0.01))
    return comparison([], total, [MetricComparison("", comparison_row(metric, [10, 10], [9, 9], relative_interval=interval))])


def test_a_metric_of_one_load_is_checked_under_that_load() -> None:
    loads = [under_load("served", (-0.2, -0.1)), under_load("p99", (0.02, 0.04))]
    assert check_conditions(loads, [Limit("p99", 0.05)]) == CheckedLimits((), ())
    assert len(check_conditions(loads, [Limit("p99", 0.01), Limit("served", 0.05)]).broken) == 1
    falling = check_conditions(loads, [Limit("served", 0.05)], frozenset({"served"}))
    assert falling.broken == ("cand: served fell by at least 10.00 %, more than 5 %",)
    with pytest.raises(UsageError, match="no row or metric 'p98'"):
        check_conditions(loads, [Limit("p98", 0.05)])
