"""The names that are found with a pattern are those in which `re` finds it, however many are looked through."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiler.model.analysis_choices import DEFAULT_RULE_SETS
from profiler.model.rule_pattern import RulePattern
from profiler.rules.check.known_names import known_places
from profiler.rules.loader import load_rule_sets
from profiler.rules.name_search import NameSearch

PATTERNS = ("abc", "^abc$", "a|bc", "^ab|c$", "ab*c", "(?:ab|cd)e", "[ab]c", "(a)b\\1", "a.c", "d?", "^(?!a)b", "(^|:)mod")
FILLING = tuple(f"filling::of<{number}>" for number in range(3000))


def found(names: list[str], pattern: str) -> list[str]:
    return [name for name in names if re.search(pattern, name)]


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("filling", [(), FILLING], ids=["few", "many"])
@settings(max_examples=20)
@given(drawn=st.lists(st.text(alphabet="abcdemo:\n\u00e9\u20ac", max_size=8), unique=True))
def test_what_is_found_is_found(pattern: str, filling: tuple[str, ...], drawn: list[str]) -> None:
    names = [*filling, *drawn]
    assert NameSearch(names).with_pattern(RulePattern((pattern,))) == found(names, pattern)


@pytest.mark.parametrize("filling", [(), FILLING], ids=["few", "many"])
@pytest.mark.parametrize("rule_set", DEFAULT_RULE_SETS)
def test_built_in_patterns(rule_set: str, filling: tuple[str, ...]) -> None:
    rules = load_rule_sets((rule_set,)).rules
    patterns = [pattern for rule in rules for pattern in (rule.function, rule.under) if pattern is not None]
    known = [place.key for place in known_places(lambda name: (name, ""))]
    names = list(dict.fromkeys([*filling, *(text for name in known for text in (name, name + "::", "x" + name, name.upper()))]))
    search = NameSearch(names)
    hits = 0
    for pattern in patterns:
        expected = found(names, pattern.text)
        assert search.with_pattern(pattern) == expected, pattern.text
        hits += len(expected)
    assert hits > 100


def test_no_names() -> None:
    assert NameSearch([]).with_pattern(RulePattern(("a",))) == []
    assert NameSearch([]).with_pattern(RulePattern(("a*",))) == []
