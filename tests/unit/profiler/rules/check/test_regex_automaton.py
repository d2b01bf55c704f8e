"""Proofs that one pattern covers another, against all short texts."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.rules.check.regex_automaton import finds_all_of, search_automaton
from profiler.rules.check.regex_examples import example_texts
from profiler.rules.regex_tree import alternatives, parse_regex

TEXTS = ["".join(letters) for length in range(1, 6) for letters in itertools.product("abc:-", repeat=length)]


def patterns() -> st.SearchStrategy[str]:
    atoms = st.sampled_from(["a", "b", ":", "ab", "[ab]", "[^a]", r"\w", ".", "^a", "b$", "^", "$"])
    return st.recursive(
        atoms,
        lambda inner: st.one_of(
            st.tuples(inner, inner).map("".join),
            st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
            st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "*?"])).map(
                lambda pair: f"(?:{pair[0]}){pair[1]}"
            ),
        ),
        max_leaves=5,
    )


def proved_by(covering: list[str], covered: str) -> bool:
    return finds_all_of(search_automaton(list(map(parse_regex, covering)), unknown_holds=False), parse_regex(covered))


def finds(pattern: str) -> set[str]:
    compiled = re.compile(pattern)
    return {text for text in TEXTS if compiled.search(text)}


@given(st.lists(patterns(), max_size=2), patterns())
def test_a_proof_is_never_wrong(covering: list[str], covered: str) -> None:
    proved = proved_by(covering, covered)
    found = set().union(*map(finds, covering)) if covering else set()
    missed = finds(covered) - found
    assert not (proved and missed)


@given(patterns(), patterns())
def test_what_no_text_refutes_is_proved(covering: str, covered: str) -> None:
    """Patterns this small differ in a text of five characters, or in one of the texts that a longer one takes."""
    longer = {text for text in example_texts(parse_regex(covered)) if re.search(covered, text)}
    if finds(covered) <= finds(covering) and all(re.search(covering, text) for text in longer):
        assert proved_by([covering], covered)


@pytest.mark.parametrize(
    ("covered", "covering", "proved"),
    [
        ("^sha2::", ["^sha"], True),
        ("^sha", ["^sha2::"], False),
        ("^a|^b", ["^a", "^b"], True),
        ("abc|cde", ["b", "d"], True),
        (r"^\w+::", ["::"], True),
        (r"^[a-z]+$", [r"^\w*$"], True),
        (r"^\d+$", [r"^[0-9]+$"], False),  # other scripts have digits too
        ("x", ["^"], True),
        ("a{2,}", ["a{2,3}"], True),
        ("a^b", [], True),
        ("a", [], False),
        # Conditions are never taken as fulfilled by what covers, always by what is covered.
        ("(?!x)foo", ["foo"], True),
        ("foo", ["(?!x)foo"], False),
        (r"\bfoo", ["foo"], True),
        ("foo", [r"foo\b"], False),
        ("(?i)foo", ["foo"], False),
        ("(a)\\1", ["a"], True),
        # Characters beyond ASCII.
        ("ü", ["."], True),
        ("^[^ü]$", ["^[^ö]$"], False),
    ],
)
def test_pairs(covered: str, covering: list[str], proved: bool) -> None:
    assert proved_by(covering, covered) is proved


def test_a_proof_that_would_take_too_long_is_given_up() -> None:
    assert not proved_by(["(?:a|b)*a(?:a|b){25}c"], "(?:a|b)*a(?:a|b){24}c")
    assert not proved_by(["a{9000}"], "a{9001}")


@given(patterns())
def test_examples_are_found_by_their_pattern(pattern: str) -> None:
    """Anchors within a pattern can make it hopeless, so only texts that the tree takes as a whole count."""
    if "^" not in pattern.replace("[^", "") and "$" not in pattern:
        assert all(re.search(pattern, text) for text in example_texts(parse_regex(pattern)))
        assert example_texts(parse_regex(pattern))


@pytest.mark.parametrize(
    ("pattern", "parts"),
    [
        ("a|b", ("a", "b")),
        (r"a|(b|c)|[|)]d|\|e|[]|]x|", ("a", "(b|c)", "[|)]d", r"\|e", "[]|]x", "")),
        ("(a|b)", ("(a|b)",)),
        ("(?i)a|b", ("(?i)a|b",)),
        (r"\\|\(|x", (r"\\", r"\(", "x")),
    ],
)
def test_alternatives_on_the_top_level(pattern: str, parts: tuple[str, ...]) -> None:
    assert alternatives(pattern) == parts
