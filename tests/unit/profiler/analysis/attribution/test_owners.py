"""Owner breakdown and the contents of ``other``."""

from __future__ import annotations

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from profiler.analysis.attribution.apply_symbols import apply_symbols
from profiler.analysis.attribution.attributed_run import AttributedRun
from profiler.analysis.attribution.owners import merge_other_functions, merge_owner_cells, other_functions, owner_cells
from profiler.model.costs import OtherFunction, OwnerCell
from support.attribution import attributed, categories_of_samples, rules
from support.profile_from_text import profile_from_text

RULES_TEXT = """
[[rule]]
category = "tree"
function = '^tree::'
[[rule]]
category = "ssz"
function = '^ssz::'
[[rule]]
category = "memmove"
passthrough = true
function = '^memmove$'
"""


def run(text: str, more_rules: str = "") -> AttributedRun:
    return attributed(profile_from_text(text).symbolized(), rules(RULES_TEXT + more_rules))


def test_each_leaf_is_the_sum_of_its_owners() -> None:
    text = """
    weight  41          15        8        30          6
    ---
            main        main      main     main        plain
            tree::push  ssz::enc  .        tree::push  .
            memmove     memmove   memmove  .           .
    """
    assert merge_owner_cells([owner_cells(run(text))]) == (
        OwnerCell("memmove", "tree", 41),
        OwnerCell("memmove", "ssz", 15),
        OwnerCell("memmove", "memmove", 8),
        OwnerCell("tree", "tree", 30),
        OwnerCell("other", "other", 6),
    )


def test_cells_of_runs_are_added() -> None:
    first = (OwnerCell("a", "x", 5), OwnerCell("b", "b", 7))
    second = (OwnerCell("a", "y", 5), OwnerCell("b", "b", 1), OwnerCell("a", "x", 1))
    assert merge_owner_cells([first, second]) == (
        OwnerCell("a", "x", 6),
        OwnerCell("a", "y", 5),
        OwnerCell("b", "b", 8),
    )


OTHERS = """
weight  5             9            3           2                     1                 4
---
        main          main         main        main                  main              tree::f
        my::f         your's::g    libx.so!?   (anonymous namespace)::h  operator()    .
"""


def test_the_suggested_line_takes_the_function() -> None:
    found = other_functions(run(OTHERS))
    assert {entry.name: entry.weight for entry in found} == {
        "my::f": 5,
        "your's::g": 9,
        next(entry.name for entry in found if entry.name.startswith("libx.so+0x")): 3,
        "(anonymous namespace)::h": 2,
        "operator()": 1,
    }
    for entry in found:
        assert tomllib.loads(entry.suggested_rule)
        taken = run(OTHERS, f'[[rule]]\ncategory = "taken"\n{entry.suggested_rule}\n')
        weights = dict(zip(categories_of_samples(taken), taken.symbolized.capture.samples.weight.tolist(), strict=True))
        assert weights["taken"] == entry.weight


@given(st.lists(st.integers(1, 6), min_size=1, max_size=30), st.integers(1, 8))
def test_what_the_limit_leaves_out_is_not_among_the_heaviest(weights: list[int], limit: int) -> None:
    """Without any symbols all functions are places; equal weights are told apart by name."""
    functions = "  ".join(f"f{number % 20}" for number in range(len(weights)))
    profile = profile_from_text(f"weight  {'  '.join(map(str, weights))}\n---\n  {functions}\n")
    found = attributed(apply_symbols(profile.capture, {}), rules(RULES_TEXT))
    every, cut = other_functions(found), other_functions(found, limit)
    assert len(every) == min(len(weights), 20)
    assert merge_other_functions([cut], limit) == merge_other_functions([every], limit)
    lightest = merge_other_functions([every], limit)[-1].weight
    assert {entry.weight for entry in cut if entry.weight < lightest} == set()


def test_others_of_runs_are_added_and_cut() -> None:
    first = (OtherFunction("b", 5, "function = '^b$'"), OtherFunction("a", 2, "function = '^a$'"))
    second = (OtherFunction("c", 5, "function = '^c$'"), OtherFunction("a", 1, "function = '^a$'"))
    merged = merge_other_functions([first, second], limit=2)
    assert [(entry.name, entry.weight) for entry in merged] == [("b", 5), ("c", 5)]
    assert [entry.name for entry in merge_other_functions([first, second])] == ["b", "c", "a"]
