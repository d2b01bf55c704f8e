"""In which of many names a pattern is found: all names are looked through at once for the words that the pattern needs.

Most rules are for other programs, and thousands of names hold none of their words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from profiler.model.arrays import BoolColumn, Int64Column, UInt8Column, UInt32Column, distinct
from profiler.model.rule_pattern import RulePattern
from profiler.rules.necessary_words import necessary_words
from profiler.rules.presence import branches, presence_test

# From so many names on a quick test is worth taking the pattern apart.
_MANY_NAMES = 200
_GRAM_BYTES = 4
# In shorter texts a word is found before it is looked up.
_LONG_TEXT = 20_000
# A word with more occurrences than one in so many names rules out too little.
_RARE = 2
_NO_ROWS = np.zeros(0, np.int64)


class PatternPart(NamedTuple):
    """One branch of a pattern, and words of which one is in every text in which it is found (none: not known)."""

    text: str
    words: tuple[str, ...]


@cache
def _whole(pattern: str) -> PatternPart:
    return PatternPart(pattern, necessary_words([pattern]))


@cache
def _parts(pattern: str) -> tuple[PatternPart, ...]:
    return tuple(_whole(branch) for branch in branches(pattern))


class NameSearch:
    """``names``: distinct."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        texts = [name.encode("utf-8", "surrogatepass") for name in names]
        # No word of a pattern holds a line break, so none reaches from one name into the next.
        self._index = _PlaceIndex(b"\n".join(texts))
        self._start = np.cumsum([0, *(len(text) + 1 for text in texts)])
        self._rows_of_word: dict[str, Int64Column | None] = {}

    def with_pattern(self, pattern: RulePattern) -> list[str]:
        """The names in which the pattern is found."""
        is_found = np.zeros(len(self._names), np.bool_)
        anywhere = []
        rows = self._rows_with_one_of(_whole(pattern.text).words)
        is_ruled_out = rows is not None and not len(rows)
        for part in () if is_ruled_out else _parts(pattern.text):
            rows = self._rows_with_one_of(part.words)
            if rows is None:
                anywhere.append(part.text)
            elif len(rows):
                # Only what may be found is compiled: most parts of most rules are for other programs.
                self._search(part.text, rows[~is_found[rows]], is_found)
        if anywhere:
            self._search("|".join(anywhere), np.flatnonzero(~is_found), is_found)
        return [self._names[row] for row in np.flatnonzero(is_found).tolist()]

    def _search(self, pattern: str, rows: Int64Column, is_found: BoolColumn) -> None:
        """Marks those of the rows in whose names the pattern is found."""
        is_in = presence_test(pattern) if len(rows) >= _MANY_NAMES else RulePattern((pattern,)).search
        for row in rows.tolist():
            if is_in(self._names[row]):
                is_found[row] = True

    def _rows_with_one_of(self, words: Sequence[str]) -> Int64Column | None:
        """Rows of the names that hold one of the words; ``None`` without words, or where one is nearly everywhere."""
        if not words:
            return None
        self._look_for(words)
        found = []
        for word in words:
            rows = self._rows_of_word[word]
            if rows is None:
                return None
            if len(rows):
                found.append(rows)
        if len(found) < 2:
            return found[0] if found else _NO_ROWS
        return distinct(np.concatenate(found))

    def _look_for(self, words: Sequence[str]) -> None:
        new = [word for word in dict.fromkeys(words) if word not in self._rows_of_word]
        encoded = [word.encode("utf-8", "surrogatepass") for word in new]
        for word, text, is_missing in zip(new, encoded, self._index.lacks(encoded), strict=True):
            self._rows_of_word[word] = _NO_ROWS if is_missing else self._rows_with(text)

    def _rows_with(self, word: bytes) -> Int64Column | None:
        places = self._index.places(word)
        if len(places) * _RARE > len(self._names):
            return None
        return distinct(np.searchsorted(self._start, places, "right") - 1)


class _PlaceIndex:
    """Where words are in a text.  Of a long one all few bytes in a row are sorted: then a word is looked for where its rarest
    ones are, and most words, which are nowhere, need no look at the text."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._is_long = len(text) >= _LONG_TEXT
        self._bytes = np.frombuffer(text, np.uint8)
        grams = _grams(self._bytes if self._is_long else self._bytes[:0])
        self._place = np.argsort(grams)
        self._gram = grams[self._place]

    def lacks(self, words: Sequence[bytes]) -> list[bool]:
        """Which of the words are certainly nowhere."""
        if not self._is_long:
            return [word not in self._text for word in words]
        wanted = _grams(np.frombuffer(b"".join(words), np.uint8))
        place = np.minimum(np.searchsorted(self._gram, wanted), len(self._gram) - 1)
        missing_before = np.cumsum(np.append(0, self._gram[place] != wanted)).tolist()
        lacks, start = [], 0
        for word in words:
            end = max(start + len(word) - _GRAM_BYTES + 1, start)
            lacks.append(end < len(missing_before) and missing_before[end] > missing_before[start])
            start += len(word)
        return lacks

    def places(self, word: bytes) -> Int64Column:
        """Where ``word`` begins, in no order."""
        if len(word) < _GRAM_BYTES or not self._is_long:
            return np.array([found.start() for found in re.finditer(re.escape(word), self._text)], np.int64)
        wanted = _grams(np.frombuffer(word, np.uint8))
        first, end = np.searchsorted(self._gram, wanted), np.searchsorted(self._gram, wanted, "right")
        rarest = int((end - first).argmin())
        places = self._place[first[rarest] : end[rarest]] - rarest
        places = places[(places >= 0) & (places <= len(self._text) - len(word))]
        for at, byte in enumerate(word):
            if not len(places):
                break
            places = places[self._bytes[places + at] == byte]
        return places


def _grams(text: UInt8Column) -> UInt32Column:
    """All ``_GRAM_BYTES`` bytes in a row, as numbers."""
    count = max(len(text) - _GRAM_BYTES + 1, 0)
    grams = np.zeros(count, np.uint32)
    for at in range(_GRAM_BYTES):
        grams |= text[at : at + count].astype(np.uint32) << np.uint32(8 * at)
    return grams
