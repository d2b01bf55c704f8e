"""Why time stands in its category."""

from __future__ import annotations

import re

from profiler.analysis.attribution.attributed_run import AttributedRun
from profiler.analysis.attribution.explain import explain_run, merge_explanations
from profiler.model.explanation import Explanation, PassedFrame
from support.attribution import attributed, rules
from support.profile_from_text import profile_from_text

RULES = rules(
    """
[[rule]]
category = "hashing"
function = '^sha::'

[[rule]]
category = "malloc"
passthrough = true
function = '^malloc$'
dso = '^libc'

[[rule]]
transparent = true
function = '^std::'
"""
)

DRAWN = """
weight  3          5                100         1000
---
        main       main             main        main
        sha::f     sha::f           sha::g      plain
        plain      libc.so!malloc   std::copy   .
        std::copy  .                .           .
"""


def run(text: str = DRAWN) -> AttributedRun:
    return attributed(profile_from_text(text).symbolized(), RULES)


def explained(pattern: str, *runs: AttributedRun) -> tuple[Explanation, ...]:
    return merge_explanations([explain_run(entry, RULES, re.compile(pattern)) for entry in runs or (run(),)])


def test_rule_passed_frames_and_share() -> None:
    (found,) = explained("^sha::f$", run("weight  3  1\n---\nmain  main\nsha::f  .\nplain  .\nstd::copy  ."))
    assert found == Explanation(
        function="std::copy",
        category="hashing",
        owner="hashing",
        rule_origin="test.toml:2",
        rule_pattern="function = '^sha::'",
        named_by="sha::f",
        passed_over=(PassedFrame("std::copy", "transparent: test.toml:12"), PassedFrame("plain", "no rule matches")),
        stack_leaf_first=("std::copy", "plain", "sha::f", "main"),
        weight=3,
        samples=1,
        share=0.75,
    )


def test_frames_inside_the_naming_one_are_found_too() -> None:
    assert [(entry.named_by, entry.weight) for entry in explained("^std::copy$")] == [("sha::g", 100), ("sha::f", 3)]


def test_owners_and_patterns_of_a_passthrough_leaf() -> None:
    (found,) = explained("malloc")
    assert (found.category, found.owner, found.rule_origin) == ("malloc", "hashing", "test.toml:6")
    assert found.rule_pattern == "function = '^malloc$', dso = '^libc'"


def test_of_a_list_of_patterns_the_one_that_was_found_is_shown() -> None:
    rule_set = rules(
        """
[[rule]]
category = "tree"
function = ['^absent', '^node::', '^n']
dso = ['^other', '^app$']
under = ['^nowhere$', '^outer$', '^main$']
"""
    )
    drawn = profile_from_text("weight  1\n---\nmain\nouter\nnode::hash").symbolized()
    (found,) = merge_explanations([explain_run(attributed(drawn, rule_set), rule_set, re.compile("node"))])
    assert found.rule_pattern == "function = '^node::', dso = '^app$', under = '^outer$'"


def test_other_has_no_rule() -> None:
    found = explained("^plain$")
    assert [(entry.category, entry.rule_origin, entry.named_by, entry.weight) for entry in found] == [
        ("other", "", "", 1000),
        ("hashing", "test.toml:2", "sha::f", 3),
    ]
    assert [frame.function for frame in found[0].passed_over] == ["plain", "main"]


def test_frames_beyond_the_naming_one_are_asked_last() -> None:
    # "main" is passed over in the last stack only; in the others it lies beyond the frame that named them.
    assert [entry.weight for entry in explained("^main$")] == [1000]
    only_named = run("main  main\nsha::f  sha::g")
    assert {entry.function for entry in explained("^main$", only_named)} == {"sha::f", "sha::g"}


def test_runs_are_added() -> None:
    found = explained("^malloc$", run(), run("weight  7\n---\nmain\nsha::f\nlibc.so!malloc"))
    assert [(entry.weight, entry.samples) for entry in found] == [(12, 2)]
    assert found[0].share == 12 / (1108 + 7)


def test_nothing_matches() -> None:
    assert explained("^absent$") == ()
