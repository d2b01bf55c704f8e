"""Regular expressions as trees, over the characters by which names differ.

Python's own parser reads the pattern, so that a tree means what ``re`` does.  What a tree cannot say (look-around, references
to groups, word boundaries, case folding, single characters beyond ASCII) is ``Unknown``.  Four characters stand for all beyond
ASCII.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from re import _parser  # type: ignore[attr-defined]  # the only reader that reads patterns as `re` does
from typing import Any

from profiler.model.quick_dataclass import dataclass

# Beyond ASCII: a letter, a digit, a blank, a sign.
ALPHABET = frozenset(map(chr, range(128))) | {"\U00020000", "\uff13", "\u3000", "\ue000"}


@dataclass(frozen=True, slots=True)
class Symbols:
    """One character out of ``characters``."""

    characters: frozenset[str]


@dataclass(frozen=True, slots=True)
class Row:
    """All ``parts`` in turn; none is the empty text."""

    parts: tuple[RegexTree, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of ``options``."""

    options: tuple[RegexTree, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """``part`` at least ``least`` and at most ``most`` times; None = without limit."""

    part: RegexTree
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Anchor:
    """The start or the end of the text."""

    is_end: bool


@dataclass(frozen=True, slots=True)
class Unknown:
    """A condition that trees cannot express; it takes no characters when ``is_empty``."""

    is_empty: bool


_FLAGS = re.compile(r"\(\?[aiLmsux]+\)")
# An escape, a whole character class, or one character.
_TOKENS = re.compile(r"\\.|\[\^?\]?(?:[^\]\\]|\\.)*\]|.", re.DOTALL)

RegexTree = Symbols | Row | Choice | Repeat | Anchor | Unknown
NOTHING = Row(())


def parse_regex(pattern: str) -> RegexTree:
    """The tree of a pattern that ``re.compile`` accepts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            parsed = _parser.parse(pattern)
        except RecursionError:  # deeper on the stack than when it was compiled
            return Unknown(is_empty=False)
    if parsed.state.flags & (re.IGNORECASE | re.MULTILINE | re.DOTALL | re.ASCII | re.VERBOSE):
        return Unknown(is_empty=False)
    try:
        return _row(parsed)
    except RecursionError:
        return Unknown(is_empty=False)


def alternatives(pattern: str) -> tuple[str, ...]:
    """The parts of a pattern between the bars on its top level; a pattern that begins with flags stays whole."""
    if "|" not in pattern or _FLAGS.match(pattern):
        return (pattern,)
    parts, depth, begin = [], 0, 0
    for token in _TOKENS.finditer(pattern):
        depth += {"(": 1, ")": -1}.get(token[0], 0)
        if token[0] == "|" and not depth:
            parts.append(pattern[begin : token.start()])
            begin = token.end()
    return (*parts, pattern[begin:])


def _row(parsed: Iterable[Any]) -> RegexTree:
    parts = tuple(_node(str(operation), argument) for operation, argument in parsed)
    return parts[0] if len(parts) == 1 else Row(parts)


def _node(operation: str, argument: Any) -> RegexTree:
    if operation in ("LITERAL", "NOT_LITERAL", "ANY", "IN"):
        characters = _characters(operation, argument)
        return Unknown(is_empty=False) if characters is None else Symbols(characters)
    if operation == "BRANCH":
        return Choice(tuple(_row(option) for option in argument[1]))
    if operation == "SUBPATTERN":
        _, added, removed, body = argument
        return Unknown(is_empty=False) if added or removed else _row(body)
    if operation in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        least, most, body = argument
        limit = None if str(most) == "MAXREPEAT" else int(most)
        return Unknown(is_empty=False) if operation == "POSSESSIVE_REPEAT" else Repeat(_row(body), int(least), limit)
    if operation == "AT":
        name = str(argument)
        if name in ("AT_BEGINNING", "AT_BEGINNING_STRING"):
            return Anchor(is_end=False)
        return Anchor(is_end=True) if name in ("AT_END", "AT_END_STRING") else Unknown(is_empty=True)
    return Unknown(is_empty=operation in ("ASSERT", "ASSERT_NOT"))


def _characters(operation: str, argument: Any) -> frozenset[str] | None:
    """None for a set that tells characters beyond ASCII apart."""
    if operation == "ANY":
        return ALPHABET - {"\n"}
    members = argument if operation == "IN" else [("LITERAL", argument)]
    found: frozenset[str] = frozenset()
    for kind, value in members:
        inside = _members(str(kind), value)
        if inside is None:
            return None
        found |= inside
    return ALPHABET - found if operation == "NOT_LITERAL" or str(members[0][0]) == "NEGATE" else found


def _members(kind: str, value: Any) -> frozenset[str] | None:
    if kind in ("LITERAL", "RANGE"):
        low, high = (value, value) if kind == "LITERAL" else value
        return frozenset(map(chr, range(low, high + 1))) if high < 128 else None
    if kind == "CATEGORY":
        name = str(value).removeprefix("CATEGORY_")
        inside = frozenset(char for char in ALPHABET if _is_in(name.removeprefix("NOT_"), char))
        return ALPHABET - inside if name.startswith("NOT_") else inside
    return frozenset()


def _is_in(category: str, char: str) -> bool:
    if category == "DIGIT":
        return char.isdecimal()
    return char.isspace() if category == "SPACE" else char.isalnum() or char == "_"
