"""The order and the content of matches."""

from __future__ import annotations

import numpy as np

from profiler.model.category import Places, RuleMatches, RuleSet
from profiler.model.function import Function, NameSource
from profiler.model.function_table import table_of_named
from profiler.rules.loader import parse_rule_file
from profiler.rules.matcher import RuleMatcher

RULES = """
[[rule]]
category = "fall {dso} {part}"
fallback = true
function = '^(?P<part>\\w+)::'

[[rule]]
category = "under"
function = '^a::'
under = '^outer$'

[[rule]]
category = "a"
group = "letters"
passthrough = true
function = '^a::'

[[rule]]
category = "never reached for a::"
function = '^a::'

[[rule]]
transparent = true
function = '^core::'

[[rule]]
category = "by file"
file = '\\.rs$'
dso = '^app$'
"""


def function(key: str, trait_key: str = "") -> Function:
    return Function(key, key, key, trait_key, NameSource.SYMBOL_TABLE)


def match(matcher: RuleMatcher, *entries: tuple[Function, str, str]) -> RuleMatches:
    rows = np.arange(len(entries), dtype=np.int32)
    files = [file for _, file, _ in entries]
    file_rows = np.array([row if file else -1 for row, file in enumerate(files)], np.int32)
    return matcher.match(
        table_of_named(f for f, _, _ in entries), files, [dso for _, _, dso in entries], Places(rows, file_rows, rows)
    )


def shown(matches: RuleMatches, place: int) -> list[str]:
    rows = range(matches.start[place], matches.start[place + 1])
    return ["-" if matches.category[row] < 0 else matches.categories[matches.category[row]] for row in rows]


def matcher() -> RuleMatcher:
    return RuleMatcher(RuleSet("test", parse_rule_file(RULES, "test.toml").rules))


def test_order_of_trial() -> None:
    found = match(
        matcher(),
        (function("a::f"), "", "app"),
        (function("b::f"), "", "lib.so"),
        (function("b::f"), "x.rs", "app"),
        (function("core::f"), "", "app"),
        (function("plain"), "", "app"),
    )
    assert shown(found, 0) == ["under", "a"]
    assert shown(found, 1) == ["fall lib.so b"]
    assert shown(found, 2) == ["by file"]
    assert shown(found, 3) == ["-"]
    assert shown(found, 4) == []
    assert found.rule.tolist() == [1, 2, 0, 5, 4]


def test_groups_and_passthrough_per_category() -> None:
    found = match(matcher(), (function("a::f"), "", "app"))
    assert dict(zip(found.categories, found.groups, strict=True)) == {"under": "", "a": "letters"}
    assert dict(zip(found.categories, found.is_passthrough.tolist(), strict=True)) == {"under": False, "a": True}


def test_trait_keys_serve_categories_but_never_transparency() -> None:
    found = match(
        matcher(),
        (function("alloc::Vec::f", "a::Trait::f"), "", "app"),
        (function("mine::T::clone", "core::Clone::clone"), "", "app"),
    )
    assert shown(found, 0) == ["under", "a"]
    assert shown(found, 1) == ["fall app mine"]


def test_under_hits_are_of_key_or_trait_key() -> None:
    found = match(matcher(), (function("outer"), "", "app"), (function("x", "outer"), "", "app"), (function("y"), "", "app"))
    assert found.under_patterns == ("^outer$",)
    assert found.under_hits.tolist() == [[True, True, False]]


def test_categories_keep_their_rows_over_captures() -> None:
    kept = matcher()
    first = match(kept, (function("b::f"), "", "one.so"))
    second = match(kept, (function("a::f"), "", "app"), (function("b::f"), "", "one.so"))
    assert second.categories[: len(first.categories)] == first.categories
    assert shown(second, 1) == shown(first, 0)


def test_the_first_file_decides_about_a_category() -> None:
    rules = [
        *parse_rule_file("[[rule]]\ncategory = \"x\"\nfunction = '^one'\n", "mine.toml").rules,
        *parse_rule_file('[[rule]]\ncategory = "x"\ngroup = "g"\npassthrough = true\nfunction = \'^two\'\n', "b.toml").rules,
    ]
    found = match(RuleMatcher(RuleSet("both", tuple(rules))), (function("two"), "", "app"), (function("one"), "", "app"))
    assert found.is_passthrough.tolist() == [False]
    assert found.groups == ("g",)


def test_braces_in_names_are_not_placeholders() -> None:
    rule_set = RuleSet("t", parse_rule_file("[[rule]]\ncategory = \"{f} in {dso}\"\nfunction = '(?P<f>.+)'\n", "t.toml").rules)
    found = match(RuleMatcher(rule_set), (function("{dso}::{closure}"), "", "app"))
    assert found.categories == ("{dso}::{closure} in app",)


def test_names_of_sums_are_not_taken_by_expansions() -> None:
    """A table's "total" and "other" stay what they are, whatever a file or function is called."""
    text = "[[rule]]\ncategory = \"{f}\"\nfunction = '^x::(?P<f>.*)$'\n[[rule]]\ncategory = \"{dso}\"\ndso = '.'\n"
    kept = RuleMatcher(RuleSet("t", parse_rule_file(text, "t.toml").rules))
    found = match(
        kept, *((function("f"), "", dso) for dso in ("total", "other", "(rest)", "totals")), (function("x::"), "", "a")
    )
    assert [shown(found, place) for place in range(5)] == [
        ["total (by rule)"],
        ["other (by rule)"],
        ["(rest) (by rule)"],
        ["totals"],
        ["nameless (by rule)"],
    ]


def test_code_without_a_name_is_known_by_its_dso() -> None:
    rule_set = RuleSet("t", parse_rule_file("[[rule]]\ncategory = \"lib\"\nfunction = '^libx\\.so$'\n", "t.toml").rules)
    nameless = [Function(f"libx.so+0x{n:x}", "", f"libx.so+0x{n:x}", "", NameSource.UNRESOLVED) for n in (16, 32)]
    found = match(RuleMatcher(rule_set), *((entry, "", "libx.so") for entry in nameless))
    assert [shown(found, place) for place in (0, 1)] == [["lib"], ["lib"]]
