"""Nodes that are not the build that their experiment calls them."""

from __future__ import annotations

from dataclasses import replace

from profiler.analysis.comparison.builds_of_nodes import build_warnings
from profiler.model.costs import ArmCosts
from support.arms import arm, infos

OLD, NEW, OTHER = "aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb", "cccccccccccccccc"


def on_nodes(variant: str, builds: dict[str, str]) -> ArmCosts:
    """A window of each node, of that build."""
    made = tuple(
        replace(info, identity=replace(info.identity, instance=node), program=replace(info.program, build_id=build))
        for info, (node, build) in zip(infos(variant, len(builds)), builds.items(), strict=True)
    )
    return arm(variant, {"a": [1] * len(builds)}, infos=made)


def test_one_build_each_is_nothing_to_tell_of() -> None:
    base, fat = on_nodes("base", {"n1": OLD, "n2": OLD, "n3": ""}), on_nodes("fat", {"n1": NEW, "n2": NEW, "n3": ""})
    assert build_warnings(base, [fat]) == []


def test_a_swap_that_did_nothing() -> None:
    base, fat = on_nodes("base", {"n1": OLD, "n2": OLD}), on_nodes("fat", {"n1": NEW, "n2": OLD})
    mixed, shared = build_warnings(base, [fat])
    assert (mixed.code, mixed.message) == ("builds-mixed", "fat is 2 builds: aaaaaaaaaaaa on n2; bbbbbbbbbbbb on n1")
    assert (shared.code, shared.message) == (
        "build-shared",
        "base and fat are one build, aaaaaaaaaaaa: as base on n1, n2 and as fat on n2",
    )


def test_many_nodes_are_not_all_named() -> None:
    base = on_nodes("base", {f"n{number}": OLD for number in range(8)} | {"x": OTHER})
    (mixed,) = build_warnings(base, [on_nodes("fat", {"n1": NEW})])
    assert mixed.message == "base is 2 builds: aaaaaaaaaaaa on n0, n1, n2, n3, n4, 3 more; cccccccccccc on x"


def test_runs_that_are_of_no_node_are_not_looked_at() -> None:
    same = tuple(replace(info, program=replace(info.program, build_id=OLD)) for info in infos("a", 2))
    assert build_warnings(arm("a", {"a": [1, 1]}, infos=same), [arm("b", {"a": [1, 1]}, infos=same)]) == []
