"""Whether a pattern is found in a text, without where: several times faster than a search for patterns of many alternatives.

`re` tries an alternation at every position of the text, and the anchored alternatives too.  Here the alternatives are taken
apart: plain words are looked for as words, anchored ones at the start only, and what is left is searched.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from profiler.model.rule_pattern import RulePattern

_WORD = re.compile(r"(?:[\w :/,<>&=~-]|\\[.$^*+?(){}\[\]|])+", re.ASCII)
_ESCAPE = re.compile(r"\\(.)")
# What refers to other parts of the pattern or changes how they are read: such patterns stay whole.
_QUANTIFIERS = frozenset("*+?{")
NOT_DIVISIBLE = re.compile(r"\\[1-9]|\(\?P=|\(\?\(|\(\?[aiLmsux-]")


def presence_test(pattern: str) -> Callable[[str], bool]:
    """A function that says for a text what ``bool(re.search(pattern, text))`` says."""
    parts = branches(pattern)
    if len(parts) < 2:
        search = RulePattern((pattern,)).search
        return lambda text: search(text) is not None
    words = tuple(_ESCAPE.sub(r"\1", part) for part in parts if _WORD.fullmatch(part))
    starts = tuple(_ESCAPE.sub(r"\1", part[1:]) for part in parts if part[:1] == "^" and _WORD.fullmatch(part[1:]))
    anchored = [part[1:] for part in parts if part[:1] == "^" and not _WORD.fullmatch(part[1:])]
    others = [part for part in parts if part[:1] != "^" and not _WORD.fullmatch(part)]
    matches = RulePattern(("|".join(anchored),)).compiled.match if anchored else _never
    finds = RulePattern(("|".join(others),)).compiled.search if others else _never

    def is_present(text: str) -> bool:
        if text.startswith(starts) or matches(text) is not None:
            return True
        for word in words:
            if word in text:
                return True
        return finds(text) is not None

    return is_present


def _never(text: str) -> None:
    return None


def branches(pattern: str) -> list[str]:
    """Patterns of which one is found where ``pattern`` is; the pattern itself where it cannot be taken apart."""
    return [pattern] if NOT_DIVISIBLE.search(pattern) else _branches(pattern)


def _branches(pattern: str) -> list[str]:
    """The alternatives of a pattern, also those within a group that is an alternative by itself."""
    found: list[str] = []
    for branch in _split(pattern):
        end = _closing(branch, 0) if branch else 0
        if branch.startswith("(?:") and end == len(branch) - 1:
            found += _branches(branch[3:end])
        elif branch.startswith("(^|") and branch[end + 1 : end + 2] not in _QUANTIFIERS:
            # At the start or behind something: the second half begins with plain text, which `re` finds quickly.
            found += ["^" + branch[end + 1 :], f"(?:{branch[3:end]}){branch[end + 1 :]}"]
        else:
            found.append(branch)
    return found


def _split(pattern: str) -> list[str]:
    """The alternatives on the outermost level."""
    pieces, start, position = [], 0, 0
    while position < len(pattern):
        if pattern[position] == "|":
            pieces.append(pattern[start:position])
            start = position + 1
        position = _closing(pattern, position) + 1
    return [*pieces, pattern[start:]]


def _closing(pattern: str, position: int) -> int:
    """Where what begins at ``position`` ends: an escaped character, a set, a group, else the character itself."""
    if pattern[position] == "\\":
        return position + 1
    if pattern[position] == "[":
        position += 2 if pattern[position + 1] == "^" else 1
        position += pattern[position] == "]"
        while pattern[position] != "]":
            position += 2 if pattern[position] == "\\" else 1
        return position
    if pattern[position] == "(":
        position += 1
        while pattern[position] != ")":
            position = _closing(pattern, position) + 1
    return position
