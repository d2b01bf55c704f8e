"""Cost tables, added up by hand."""

from __future__ import annotations

import numpy as np
import pytest

from profiler.analysis.attribution.aggregate import RunTable, merge_runs, run_tables
from profiler.analysis.attribution.attributed_run import AttributedRun
from profiler.errors import AnalysisError, UsageError
from profiler.model.analysis_choices import DIMENSIONS
from profiler.model.costs import CostTable
from support.attribution import attributed, rules
from support.profile_from_text import profile_from_text

RULES = rules(
    """
[[rule]]
category = "hashing"
group = "crypto"
function = '^sha::'
[[rule]]
category = "curve"
group = "crypto"
function = '^ec::'
[[rule]]
category = "malloc"
passthrough = true
function = '^malloc$'
[[rule]]
transparent = true
function = '^std::'
"""
)

DRAWN = """
weight  1                        10                          100                       1000
thread  7/7:main                 7/8:worker                  7/8:worker                9/9:main
---
        main                     clone                       clone                     main
        walk                     sha::f                      walk                      ec::add@ec.c:7
        walk > sha::f@sha.c:3    libc.so!malloc              walk                      libc.so!malloc
        sha::f > std::x@algo:5   .                           [kernel]!do_fault         libc.so!?
"""


def run() -> AttributedRun:
    return attributed(profile_from_text(DRAWN).symbolized(), RULES)


def table(dimension: str, view: str = "leaf") -> CostTable:
    return merge_runs(dimension, [run_tables(run(), (dimension,), view)[dimension]])


def rows(dimension: str, view: str = "leaf") -> list[tuple[str, int, int]]:
    cost = table(dimension, view)
    return list(zip(cost.names, cost.self_weight[:, 0].tolist(), cost.total_weight[:, 0].tolist(), strict=True))


def test_callers_without_time_of_their_own_are_in_the_order_of_what_they_called() -> None:
    text = """
weight  3      5      5
---
        aaa    main   main
        leaf   zzz    zzz
        .      leaf   mmm
"""
    run_of = attributed(profile_from_text(text).symbolized(), RULES)
    found = merge_runs("function", [run_tables(run_of, ("function",), "leaf")["function"]])
    assert list(zip(found.names, found.total_weight[:, 0].tolist(), strict=True)) == [
        ("leaf", 8),
        ("mmm", 5),
        ("main", 10),
        ("zzz", 10),
        ("aaa", 3),
    ]


def test_categories_and_groups() -> None:
    assert rows("category") == [("malloc", 1010, 1010), ("other", 100, 100), ("hashing", 1, 1)]
    assert rows("category", "owner") == [("curve", 1000, 1000), ("other", 100, 100), ("hashing", 11, 11)]
    assert rows("group", "owner") == [("crypto", 1011, 1011), ("other", 100, 100)]
    assert rows("group") == [("malloc", 1010, 1010), ("other", 100, 100), ("crypto", 1, 1)]


def test_functions_with_recursion_counted_once() -> None:
    found = {name: (own, total) for name, own, total in rows("function")}
    unnamed = next(name for name in found if name.startswith("libc.so+0x"))
    assert found == {
        "main": (0, 1001),
        "clone": (0, 110),
        "walk": (0, 101),
        "sha::f": (1, 11),
        "std::x": (0, 1),
        "ec::add": (0, 1000),
        "malloc": (10, 1010),
        "do_fault": (100, 100),
        unnamed: (1000, 1000),
    }


def test_physical_symbols_dsos_files_and_lines() -> None:
    symbols = {name: (own, total) for name, own, total in rows("symbol")}
    assert symbols["walk"] == (0, 101)
    assert symbols["sha::f"] == (1, 11)
    assert rows("dso") == [("libc.so", 1010, 1010), ("[kernel]", 100, 100), ("app", 1, 1111)]
    files = {name: (own, total) for name, own, total in rows("file")}
    assert files == {
        "[no source] libc.so": (1010, 1010),
        "[no source] [kernel]": (100, 100),
        "[no source] app": (1, 1111),
        "algo": (0, 1),
        "ec.c": (0, 1000),
        "sha.c": (0, 1),
    }
    lines = {name: total for name, _, total in rows("line")}
    assert (lines["ec.c:7"], lines["algo:5"], lines["sha.c:3"]) == (1000, 1, 1)


def test_threads_processes_and_hosts() -> None:
    assert rows("thread") == [("main", 1001, 1001), ("worker", 110, 110)]
    assert rows("process") == [("app", 1111, 1111)]
    assert rows("host") == [("host1", 1111, 1111)]
    assert table("thread").self_samples.tolist() == [[2], [2]]
    assert table("thread").self_squares.tolist() == [[1 + 1000**2], [10**2 + 100**2]]
    assert table("category").self_squares.tolist() == [[10**2 + 1000**2], [100**2], [1]]


def test_every_dimension_adds_up() -> None:
    for dimension in DIMENSIONS:
        cost = table(dimension)
        assert cost.self_weight.sum() == 1111
        assert cost.total.tolist() == [1111]
        assert cost.self_samples.sum() == 4
        assert cost.self_squares.sum() == 1 + 10**2 + 100**2 + 1000**2


def test_a_line_that_is_not_known() -> None:
    drawn = profile_from_text("main  main\nf@a.c  f@a.c:4").symbolized()
    cost = merge_runs("line", [run_tables(attributed(drawn, RULES), ("line",), "leaf")["line"]])
    found = dict(zip(cost.names, cost.self_weight[:, 0].tolist(), strict=True))
    assert found == {"a.c:?": 1, "a.c:4": 1, "[no source] app": 0}


def column(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, np.int64)


def floats(*values: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array(values, np.float64)


def test_merging_runs() -> None:
    first = RunTable(("b", "a"), ("B1", "A"), column(5, 7), column(50, 7), column(1, 2), floats(5, 7))
    second = RunTable(("a", "c", "b"), ("A", "C", "B2"), column(1, 3, 0), column(1, 3, 49), column(1, 1, 0), floats(1, 9, 0))
    cost = merge_runs("function", [first, second])
    assert cost.names == ("a", "b", "c")
    assert cost.labels == ("A", "B1", "C")
    assert cost.self_weight.tolist() == [[7, 1], [5, 0], [0, 3]]
    assert cost.total_weight.tolist() == [[7, 1], [50, 49], [0, 3]]
    assert cost.self_samples.tolist() == [[2, 1], [1, 0], [0, 1]]
    assert cost.self_squares.tolist() == [[7, 1], [5, 0], [0, 9]]
    assert cost.total.tolist() == [12, 4]


def test_rows_of_equal_weight_are_sorted_by_name() -> None:
    names = ("z", "a", "m")
    table = RunTable(names, names, column(2, 2, 2), column(2, 2, 2), column(1, 1, 1), floats(4, 4, 4))
    cost = merge_runs("function", [table])
    assert cost.names == ("a", "m", "z")


def test_sums_are_exact_where_floats_are_not() -> None:
    # 2**53 + 1 is the first integer that a double cannot hold.
    text = f"weight  {2**53}  1\n---\nmain  main"
    drawn = attributed(profile_from_text(text).symbolized(), RULES)
    cost = merge_runs("function", [run_tables(drawn, ("function",), "leaf")["function"]])
    assert cost.self_weight.tolist() == [[2**53 + 1]]


@pytest.mark.parametrize("weight", ["-1", str(2**63 - 1)])
def test_weights_that_cannot_be_summed(weight: str) -> None:
    text = f"weight  {weight}  1\n---\nmain  main"
    with pytest.raises(AnalysisError, match="the recording is damaged"):
        attributed(profile_from_text(text).symbolized(), RULES)


def test_unknown_names_are_usage_errors() -> None:
    with pytest.raises(UsageError, match="unknown dimension 'funktion': choose one of category, group"):
        run_tables(run(), ("funktion",), "leaf")
    with pytest.raises(UsageError, match="unknown view 'top': choose leaf or owner"):
        run_tables(run(), ("category",), "top")
