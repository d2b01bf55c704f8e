"""Regular expressions that can take exponential time: a repetition whose turns can divide one text in several ways.

A backtracking engine tries every division when the rest of the pattern is not found; ``(\\w+)*$`` doubles its time with each
character.  The test is on the position automaton (Glushkov): its states are the pattern's characters, its steps which may
follow which.  The pattern is ambiguous in a loop when a step of the loop has two derivations, or when two different loops
from one state read the same text.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import field

from profiler.model.quick_dataclass import dataclass
from profiler.rules.regex_tree import Choice, RegexTree, Repeat, Row, Symbols

_MOST_POSITIONS = 800
_MOST_STATES = 120
_MOST_STEPS = 50_000


@dataclass(frozen=True, slots=True)
class _Part:
    """States in which a part of the pattern may begin and end, and whether it can be empty."""

    first: tuple[int, ...]
    last: tuple[int, ...]
    is_nullable: bool


@dataclass(slots=True)
class _Positions:
    """``characters`` by state; ``steps``: how many derivations each step has."""

    characters: list[frozenset[str]] = field(default_factory=list)
    steps: Counter[tuple[int, int]] = field(default_factory=Counter)
    has_empty_turns: bool = False

    def add(self, tree: RegexTree) -> _Part:
        if isinstance(tree, Symbols):
            if len(self.characters) >= _MOST_POSITIONS:
                raise _TooLarge
            self.characters.append(tree.characters)
            state = len(self.characters) - 1
            return _Part((state,), (state,), False)
        if isinstance(tree, Row):
            return self._add_row(tree)
        if isinstance(tree, Choice):
            options = [self.add(option) for option in tree.options]
            first = tuple(state for option in options for state in option.first)
            last = tuple(state for option in options for state in option.last)
            return _Part(first, last, any(option.is_nullable for option in options))
        if isinstance(tree, Repeat):
            return self._add_repeat(tree)
        return _Part((), (), True)

    def _add_row(self, tree: Row) -> _Part:
        whole = _Part((), (), True)
        for part in map(self.add, tree.parts):
            self._check_size(whole.last, part.first)
            self.steps.update((last, first) for last in whole.last for first in part.first)
            whole = _Part(
                whole.first + part.first if whole.is_nullable else whole.first,
                whole.last + part.last if part.is_nullable else part.last,
                whole.is_nullable and part.is_nullable,
            )
        return whole

    def _check_size(self, last: tuple[int, ...], first: tuple[int, ...]) -> None:
        if len(self.steps) + len(last) * len(first) > _MOST_STEPS:
            raise _TooLarge

    def _add_repeat(self, tree: Repeat) -> _Part:
        part = self.add(tree.part)
        self._check_size(part.last, part.first)
        if tree.most is None or (tree.most > 1 and isinstance(tree.part, Symbols)):
            self.steps.update((last, first) for last in part.last for first in part.first)
            self.has_empty_turns |= part.is_nullable and _has_loop(tree.part)
        return _Part(part.first, part.last, part.is_nullable or tree.least == 0)


class _TooLarge(Exception):
    pass


def is_explosive(tree: RegexTree) -> bool:
    """Whether a text exists whose prefixes the pattern can read in exponentially many ways.  Patterns that are too large to
    be looked at count as harmless."""
    positions = _Positions()
    try:
        positions.add(tree)
    except (_TooLarge, RecursionError):
        return False
    if positions.has_empty_turns:
        return True
    following: dict[int, list[int]] = {}
    for start, end in positions.steps:
        following.setdefault(start, []).append(end)
    reachable = {state: _reachable(state, following) for state in following}
    for (start, end), count in positions.steps.items():
        if count > 1 and (start == end or start in reachable.get(end, ())):
            return True
    loops = {state for state, found in reachable.items() if state in found}
    return len(loops) <= _MOST_STATES and _has_twin_loops(positions, following, loops)


def _has_loop(tree: RegexTree) -> bool:
    if isinstance(tree, Repeat):
        return tree.most is None or _has_loop(tree.part)
    parts = tree.parts if isinstance(tree, Row) else tree.options if isinstance(tree, Choice) else ()
    return any(map(_has_loop, parts))


def _reachable(state: int, following: dict[int, list[int]]) -> set[int]:
    found: set[int] = set()
    pending = [state]
    while pending:
        for after in following.get(pending.pop(), ()):
            if after not in found:
                found.add(after)
                pending.append(after)
    return found


def _has_twin_loops(positions: _Positions, following: dict[int, list[int]], loops: set[int]) -> bool:
    """Whether two different ways lead from one state back to it over the same text."""
    characters = positions.characters
    for state in loops:
        seen = {(state, state, False)}
        pending = [(state, state, False)]
        while pending:
            one, other, has_parted = pending.pop()
            for left in following.get(one, ()):
                for right in following.get(other, ()):
                    if left not in loops or right not in loops or not characters[left] & characters[right]:
                        continue
                    step = (left, right, has_parted or left != right)
                    if step == (state, state, True):
                        return True
                    if step not in seen:
                        seen.add(step)
                        pending.append(step)
    return False
