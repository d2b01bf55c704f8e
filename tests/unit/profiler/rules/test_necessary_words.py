"""No text in which `re` finds a pattern lacks the words that are said to be necessary."""

from __future__ import annotations

import pytest

from profiler.rules.necessary_words import necessary_words

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
