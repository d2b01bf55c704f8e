"""Folded stacks, parsed back as their readers do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from profiler.model.call_stacks import ProcessWeights
from reports.folded import render_folded
from support.report_values import call_stacks


def parse(text: str) -> dict[tuple[str, ...], int]:
    found: dict[tuple[str, ...], int] = {}
    for line in text.splitlines():
        stack, _, weight = line.rpartition(" ")
        key = tuple(stack.split(";"))
        assert key not in found
        found[key] = int(weight)
    return found


def test_root_first_under_the_process() -> None:
    stacks = call_stacks({"main/work/leaf": [30], "main/work": [10], "main/other": [5]})
    assert render_folded(stacks) == "epoch;main;other 5\nepoch;main;work 10\nepoch;main;work;leaf 30\n"


def test_every_process_has_its_own_lines() -> None:
    stacks = call_stacks({"main": [30], "main/leaf": [12]})  # rows 0 and 1
    of_rows = np.array([0, 0, 1], np.int32), np.array([0, 1, 1], np.int32), np.array([10, 20, 12], np.int64)
    stacks = replace(stacks, processes=ProcessWeights(("app", ""), *of_rows))
    assert render_folded(stacks) == "app;main 10\nbase;main 20\nbase;main;leaf 12\n"  # nameless: the arm's name


def test_runs_are_summed_exactly() -> None:
    big = 2**53 + 1
    assert parse(render_folded(call_stacks({"main": [big, 2]}))) == {("epoch", "main"): big + 2}


def test_separators_in_names() -> None:
    stacks = call_stacks({"a;b/operator new(int, char) 3/c\nd": [7]}, process="Web;1 x")
    assert render_folded(stacks) == "Web:1 x;a:b;operator new(int, char) 3;c\\x0ad 7\n"


def test_stacks_that_read_the_same_are_one_line() -> None:
    assert render_folded(call_stacks({"a;b": [3], "a:b": [4]})) == "epoch;a:b 7\n"


def test_stacks_without_weight_are_left_out() -> None:
    assert render_folded(call_stacks({"main": [0], "main/leaf": [1]})) == "epoch;main;leaf 1\n"


def test_names_that_are_not_utf8_are_escaped() -> None:
    assert render_folded(call_stacks({"x\udcff": [1]}, process="\udc80")) == "\\x80;x\\xff 1\n"


NAMES = st.text(st.characters(exclude_characters="/"), min_size=1, max_size=8)


@given(st.dictionaries(st.lists(NAMES, min_size=1, max_size=5).map("/".join), st.integers(0, 2**60), min_size=1, max_size=12))
def test_the_sum_is_kept_for_any_names(lines: dict[str, int]) -> None:
    stacks = call_stacks({line: [weight] for line, weight in lines.items()})
    assert sum(parse(render_folded(stacks)).values()) == sum(lines.values())


@given(st.permutations(["main/a/x", "main/a", "main/b/y", "start", "main/b"]))
def test_the_order_of_stacks_does_not_matter(order: list[str]) -> None:
    weights = {"main/a/x": [1], "main/a": [2], "main/b/y": [3], "start": [4], "main/b": [5]}
    assert render_folded(call_stacks({line: weights[line] for line in order})) == render_folded(call_stacks(weights))
