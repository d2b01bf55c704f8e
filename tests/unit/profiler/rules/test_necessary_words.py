"""No text in which `re` finds a pattern lacks the words that are said to be necessary."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiler.model.analysis_choices import DEFAULT_RULE_SETS
from profiler.model.rule_pattern import RulePattern
from profiler.rules.known_names import known_places
from profiler.rules.loader import load_rule_sets
from profiler.rules.necessary_words import necessary_words, search_on_demand

# Worked out by hand from the syntax of regular expressions.
WORDS = [
    ("abc", ("abc",)),
    ("^abc$", ("abc",)),
    ("abc*", ("ab",)),
    ("abc?d", ("ab",)),
    ("abc{0,2}", ("ab",)),
    ("abc+", ("abc",)),
    ("a*", ()),
    ("a|bc", ("a", "bc")),
    ("a|b*", ()),
    ("(^|::)abc", ("abc",)),
    ("_*(malloc|free)_", ("malloc", "free")),
    ("(malloc|free)?_", ("_",)),
    ("(?:malloc|fr[e]{2})$", ("malloc", "fr")),
    ("(?P<x>abc)d", ("abc",)),
    ("a(?!bcd)", ("a",)),
    ("a(?=bcd)", ("a",)),
    ("(?<=bcd)a", ("a",)),
    ("(?<!bcd)a", ("a",)),
    ("(?>bcd)a", ("a",)),
    ("a(?#bcd)", ()),
    ("(?i)abc", ()),
    ("a(?i:BCD)", ()),
    ("(abc)\\1", ()),
    ("[abc]d[]|e]", ("d",)),
    ("\\[k\\]", ("[",)),
    ("\\wabc\\b", ("abc",)),
    ("\\x41bc", ("bc",)),
    ("\\u0041bc\\101", ()),
    ("\\N{DIGIT ONE}b", ("b",)),
    ("", ()),
    ("|a", ()),
]


@pytest.mark.parametrize(("pattern", "words"), WORDS)
def test_words(pattern: str, words: tuple[str, ...]) -> None:
    assert necessary_words([pattern]) == words


def test_alternatives_need_one_of_all_their_words() -> None:
    assert necessary_words(["abc", "d|e"]) == ("abc", "d", "e")
    assert necessary_words(["abc", "d*"]) == ()


@pytest.mark.parametrize("pattern", [pattern for pattern, _ in WORDS])
@settings(max_examples=30)
@given(text=st.text(alphabet="abcdmfrelo_A:1[]k", max_size=10))
def test_what_is_found_is_found(pattern: str, text: str) -> None:
    assert bool(search_on_demand(RulePattern((pattern,)))(text)) == (re.search(pattern, text) is not None)


@pytest.mark.parametrize("rule_set", DEFAULT_RULE_SETS)
def test_built_in_patterns(rule_set: str) -> None:
    rules = load_rule_sets((rule_set,)).rules
    patterns = [pattern for rule in rules for pattern in (rule.function, rule.under) if pattern is not None]
    found = 0
    for pattern in patterns:
        is_in = search_on_demand(pattern)
        for place in known_places(lambda name: (name, "")):
            name = place.key
            for text in (name, name + "::", "x" + name, name.upper()):
                expected = re.search(pattern.text, text) is not None
                assert bool(is_in(text)) == expected, (pattern.text, text)
                found += expected
    assert found > 100
