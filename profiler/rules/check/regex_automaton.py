"""Which texts a regular expression is found in, as a finite automaton; and the proof that one finds all that another does.

The proof walks through both automata at once, from the empty text, over one representative of the characters that neither
tells apart.  It is exact for patterns without ``Unknown`` parts.  With them it stays a proof: what covers is taken to find too
little, what is covered too much.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from profiler.rules.regex_tree import ALPHABET, Anchor, Choice, RegexTree, Repeat, Row, Symbols, Unknown

_MOST_STATES = 4000
_MOST_STEPS = 5000


class TooLarge(Exception):
    """The automaton or the proof would take too long."""


@dataclass(slots=True)
class _Automaton:
    """States are numbers; sets of them are the bits of an integer.  ``free``: steps without a character, ``at_start`` and
    ``at_end`` those that only the start and the end of the text allow."""

    moves: list[list[tuple[frozenset[str], int]]] = field(default_factory=list)
    free: list[list[int]] = field(default_factory=list)
    at_start: list[list[int]] = field(default_factory=list)
    at_end: list[list[int]] = field(default_factory=list)

    def state(self) -> int:
        if len(self.moves) >= _MOST_STATES:
            raise TooLarge
        for steps in (self.free, self.at_start, self.at_end):
            steps.append([])
        self.moves.append([])
        return len(self.moves) - 1


class SearchAutomaton:
    """Reads a text character by character; ``finds`` tells whether ``re.search`` would find one of ``trees`` in it."""

    def __init__(self, trees: Sequence[RegexTree], *, unknown_holds: bool) -> None:
        """``unknown_holds``: whether parts that trees cannot express are taken as found or as never found."""
        self._parts = _Automaton()
        self._unknown_holds = unknown_holds
        self._enter = self._parts.state()
        self._accept = self._parts.state()
        self._parts.moves[self._enter].append((ALPHABET, self._enter))
        self._parts.moves[self._accept].append((ALPHABET, self._accept))
        for tree in trees:
            self._add(tree, self._enter, self._accept)
        self._steps: dict[tuple[int, str], int] = {}
        self._moves: dict[str, tuple[int, dict[int, int]]] = {}

    @property
    def start(self) -> int:
        """The states before the first character."""
        return self._closure(1 << self._enter, is_start=True, is_end=False)

    def after(self, states: int, character: str) -> int:
        known = self._steps.get((states, character))
        if known is None:
            if character not in self._moves:
                self._moves[character] = self._moves_over(character)
            movable, targets = self._moves[character]
            known = 0
            for state in _bits(states & movable):
                known |= targets[state]
            self._steps[states, character] = known
        return known

    def finds(self, states: int) -> bool:
        """Whether the pattern is found when the text, not an empty one, ends in ``states``."""
        return bool(self._closure(states, is_start=False, is_end=True) >> self._accept & 1)

    def has_found(self, states: int) -> bool:
        """Whether it is found whatever follows."""
        return bool(states >> self._accept & 1)

    def character_sets(self) -> set[frozenset[str]]:
        return {characters for moves in self._parts.moves for characters, _ in moves}

    def _moves_over(self, character: str) -> tuple[int, dict[int, int]]:
        """The states that can move over a character, and where each gets by it and by free steps."""
        targets: dict[int, int] = {}
        for state, moves in enumerate(self._parts.moves):
            reached = sum({1 << target for characters, target in moves if character in characters})
            if reached:
                targets[state] = self._closure(reached, is_start=False, is_end=False)
        return sum(1 << state for state in targets), targets

    def _closure(self, states: int, *, is_start: bool, is_end: bool) -> int:
        pending = list(_bits(states))
        while pending:
            state = pending.pop()
            steps = self._parts.free[state]
            steps = steps + self._parts.at_start[state] if is_start else steps
            steps = steps + self._parts.at_end[state] if is_end else steps
            for target in steps:
                if not states >> target & 1:
                    states |= 1 << target
                    pending.append(target)
        return states

    def _add(self, tree: RegexTree, enter: int, leave: int) -> None:
        parts = self._parts
        if isinstance(tree, Symbols):
            parts.moves[enter].append((tree.characters, leave))
        elif isinstance(tree, Anchor):
            (parts.at_end if tree.is_end else parts.at_start)[enter].append(leave)
        elif isinstance(tree, Choice):
            for option in tree.options:
                self._add(option, enter, leave)
        elif isinstance(tree, Repeat):
            self._add_repeat(tree, enter, leave)
        elif isinstance(tree, Unknown):
            self._add_unknown(tree, enter, leave)
        else:
            self._add_row(tree, enter, leave)

    def _add_row(self, tree: Row, enter: int, leave: int) -> None:
        for part in tree.parts:
            after = self._parts.state()
            self._add(part, enter, after)
            enter = after
        self._parts.free[enter].append(leave)

    def _add_repeat(self, tree: Repeat, enter: int, leave: int) -> None:
        for _ in range(tree.least):
            after = self._parts.state()
            self._add(tree.part, enter, after)
            enter = after
        if tree.most is None:
            around = self._parts.state()
            self._parts.free[enter].append(around)
            self._add(tree.part, around, around)
            self._parts.free[around].append(leave)
            return
        for _ in range(tree.most - tree.least):
            self._parts.free[enter].append(leave)
            after = self._parts.state()
            self._add(tree.part, enter, after)
            enter = after
        self._parts.free[enter].append(leave)

    def _add_unknown(self, tree: Unknown, enter: int, leave: int) -> None:
        if self._unknown_holds:
            self._parts.free[enter].append(leave)
            if not tree.is_empty:
                self._parts.moves[leave].append((ALPHABET, leave))


def search_automaton(trees: Sequence[RegexTree], *, unknown_holds: bool) -> SearchAutomaton | None:
    """None where it would be too large."""
    try:
        return SearchAutomaton(trees, unknown_holds=unknown_holds)
    except (TooLarge, RecursionError):
        return None


def finds_all_of(covering: SearchAutomaton | None, covered: RegexTree) -> bool:
    """Whether every text, but the empty one, in which ``covered`` is found has one of what ``covering`` finds in it.

    ``covering`` is made with ``unknown_holds=False``.  False also where that is not provable.
    """
    automaton = search_automaton([covered], unknown_holds=True) if covering is not None else None
    if covering is None or automaton is None:
        return False
    try:
        return _is_covered(automaton, covering)
    except TooLarge:
        return False


def _is_covered(covered: SearchAutomaton, covering: SearchAutomaton) -> bool:
    representatives = _representatives(covered.character_sets() | covering.character_sets())
    pending = deque([(covered.start, covering.start)])  # not yet seen as an end: the empty text is no name
    seen: set[tuple[int, int]] = set()
    while pending:
        states = pending.popleft()
        for character in representatives:
            pair = (covered.after(states[0], character), covering.after(states[1], character))
            if pair in seen or covering.has_found(pair[1]):
                continue
            if covered.finds(pair[0]) and not covering.finds(pair[1]):
                return False
            if len(seen) >= _MOST_STEPS:
                raise TooLarge
            seen.add(pair)
            pending.append(pair)
    return True


def _representatives(sets: set[frozenset[str]]) -> list[str]:
    """One character of each class that no set tells apart, without the line end, which no name has."""
    ordered = list(sets)
    classes: dict[tuple[bool, ...], str] = {}
    for character in sorted(ALPHABET - {"\n"}):
        classes.setdefault(tuple(character in members for members in ordered), character)
    return list(classes.values())


def _bits(states: int) -> list[int]:
    found = []
    while states:
        low = states & -states
        found.append(low.bit_length() - 1)
        states ^= low
    return found
