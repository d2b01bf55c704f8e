"""In which of many names a pattern is found: all names are looked through at once for the words that the pattern needs.

Most rules are for other programs, and thousands of names hold none of their words.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from profiler.model.arrays import Int64Column, distinct
from profiler.model.rule_pattern import RulePattern
from profiler.rules.necessary_words import necessary_words
from profiler.rules.presence import presence_test

# From so many names on a quick test is worth taking the pattern apart.
_MANY_NAMES = 200
# In shorter texts a word is found before it is looked at.
_LONG_TEXT = 20_000
# What is kept of each of three bytes in a row: nearly all words that the text lacks have three that it lacks.
_TRIPLE_BITS = 6


class NameSearch:
    """``names``: distinct.  ``words``: those that patterns need, by the pattern's text; more are added."""

    def __init__(self, names: Sequence[str], words: dict[str, tuple[str, ...]]) -> None:
        self._names = names
        self._words = words
        # No word of a pattern holds a line break, so none reaches from one name into the next.
        self._text = "\n".join(names)
        self._start = np.cumsum([0, *(len(name) + 1 for name in names)])
        self._has_triple = np.zeros(1 << 3 * _TRIPLE_BITS, np.bool_)
        self._is_long = len(self._text) >= _LONG_TEXT
        if self._is_long:
            self._has_triple[_triples(self._text)] = True

    def with_pattern(self, pattern: RulePattern) -> list[str]:
        """The names in which the pattern is found."""
        if pattern.text not in self._words:
            self._words[pattern.text] = necessary_words(pattern.alternatives)
        names = self._with_one_of(self._words[pattern.text])
        if not names:
            return []
        is_in = presence_test(pattern.text) if len(names) >= _MANY_NAMES else pattern.search
        return [name for name in names if is_in(name)]

    def _with_one_of(self, words: Sequence[str]) -> Sequence[str]:
        """The names that hold one of the words; all without words, or where the words are everywhere."""
        if not words:
            return self._names
        places: list[int] = []
        for word in words:
            at = -1 if self._is_long and not self._has_triple[_triples(word)].all() else self._text.find(word)
            while at >= 0:
                places.append(at)
                at = self._text.find(word, at + 1)
            if len(places) > len(self._names):
                return self._names
        rows = np.searchsorted(self._start, np.array(places, np.int64), "right") - 1
        return [self._names[row] for row in distinct(rows).tolist()]


def _triples(text: str) -> Int64Column:
    """A number for every three bytes in a row."""
    low = np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8).astype(np.int64) & ((1 << _TRIPLE_BITS) - 1)
    return low[:-2] << 2 * _TRIPLE_BITS | low[1:-1] << _TRIPLE_BITS | low[2:]
