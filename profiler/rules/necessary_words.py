"""Words without which a pattern is found in no text: most patterns are ruled out by them without being compiled.

Compiling all built-in patterns takes longer than everything else that a report of a small file does with them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from profiler.rules.presence import NOT_DIVISIBLE

_TOKEN = re.compile(
    r"[\w :/,<>&=~-]+"  # plain text
    r"|\\(?:x..|u.{4}|U.{8}|N\{[^}]*\}|0[0-7]{0,2}|.)"  # escaped
    r"|\[\^?\]?(?:\\.|[^\]\\])*\]"  # a set
    r"|\(\?(?:P<\w+>|<?[=!]|:)?|\("  # what enters a group
    r"|\{\d*,?\d*\}"  # how often
    r"|.",
    re.DOTALL,
)
_OPTIONAL = ("*", "?", "{")
_ENTERS_TEXT = re.compile(r"\((\?(P<\w+>|:))?")  # a group that is part of what is found, unlike (?!...
# Words of one branch: one of them is in every text in which the branch is found.  Empty: nothing is known.
_Words = tuple[str, ...]


def necessary_words(alternatives: Iterable[str]) -> tuple[str, ...]:
    """Words of which at least one is in every text in which one of the regular expressions is found; empty when there is
    none that can be told without reading the expressions as `re` does."""
    found: _Words = ()
    for alternative in alternatives:
        words = () if NOT_DIVISIBLE.search(alternative) or "(?#" in alternative else _words(alternative)
        if not words:
            return ()
        found += words
    return tuple(dict.fromkeys(found))


def _words(pattern: str) -> _Words:
    try:
        return _Reader(pattern).branches()
    except RecursionError:  # groups as deep as `re` just takes them
        return ()


class _Reader:
    """Goes through one expression, group within group."""

    def __init__(self, pattern: str) -> None:
        self._tokens = _TOKEN.findall(pattern)
        self._position = 0

    def branches(self) -> _Words:
        """Up to the end of the group that has been entered: words of each of its branches, empty when one has none."""
        words: _Words = ()
        all_known = True
        while True:
            branch = self._branch()
            all_known &= bool(branch)
            words += branch
            self._position += 1
            if self._position > len(self._tokens) or self._tokens[self._position - 1] != "|":
                return words if all_known else ()

    def _branch(self) -> _Words:
        """The best that one branch requires; stops before what ends it."""
        best: _Words = ()
        best_length = 0
        while self._position < len(self._tokens) and (token := self._tokens[self._position]) not in ("|", ")"):
            self._position += 1
            if token[0] == "(":
                words = self.branches()
                length = 0 if self._is_optional() or not _ENTERS_TEXT.fullmatch(token) else min(map(len, words), default=0)
            else:
                word = self._plain(token)
                words, length = (word,), len(word)
            if length > best_length:
                best, best_length = words, length
        return best

    def _plain(self, token: str) -> str:
        """The text itself, without a last character that may be missing."""
        if token[0] == "\\":
            word = "" if token[1].isalnum() else token[1]
        else:
            word = token if token[0].isalnum() or token[0] in "_ :/,<>&=~-" else ""
        if word and self._is_optional():
            word = word[:-1]
        return word

    def _is_optional(self) -> bool:
        return self._position < len(self._tokens) and self._tokens[self._position].startswith(_OPTIONAL)
