"""Which rules match which places; what only a whole stack can decide (``under``) is left to ``analysis.attribute``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from profiler.model.arrays import BoolColumn
from profiler.model.category import OTHER, Places, Rule, RuleMatches, RuleSet
from profiler.model.symbols import Function, NameSource
from profiler.rules.loader import NAMES_OF_SUMS, PLACEHOLDER
from profiler.rules.necessary_words import search_on_demand
from profiler.rules.presence import presence_test

_TAKEN = frozenset({OTHER, *NAMES_OF_SUMS, ""})


class _Place(NamedTuple):
    """What rules look at; "" = unknown."""

    key: str
    trait_key: str
    file: str
    dso: str


_MANY_PLACES = 1000
# What a test gives is true where the function pattern of a rule is in a name.
PresenceTest = Callable[[str], object]
# (row of a rule, test or ``None`` for a rule without a function pattern, is it transparent)
_Candidate = tuple[int, PresenceTest | None, bool]


class RuleMatcher:
    """Matches places against one rule set and remembers the answers, so further captures of the same build are cheap.

    Categories keep their row over all captures that one matcher has seen.  A pattern in ``function`` is searched in the
    function's key; category rules search the trait key as well (``<Vec as TreeHash>::tree_hash_root`` is tree hashing),
    transparent rules do not, or every implementation of a standard trait would be passed over.
    """

    def __init__(self, rule_set: RuleSet) -> None:
        self._rules = rule_set.rules
        order = sorted(range(len(self._rules)), key=lambda row: (self._rules[row].is_fallback, row))
        self._order = tuple(order)
        self._is_in: list[PresenceTest | None] = [
            None if rule.function is None else search_on_demand(rule.function) for rule in self._rules
        ]
        self._has_quick_tests = False
        self._category_rows: dict[str, int] = {}
        self._groups: list[str] = []
        self._is_passthrough: list[bool] = []
        self._under_rows: dict[str, int] = {}
        self._under_tests: list[PresenceTest] = []
        for rule in self._rules:
            if rule.under is not None and rule.under.text not in self._under_rows:
                self._under_rows[rule.under.text] = len(self._under_rows)
                self._under_tests.append(search_on_demand(rule.under))
        self._rules_of_dso: dict[str, tuple[_Candidate, ...]] = {}
        self._answers: dict[_Place, tuple[tuple[int, int, int], ...]] = {}
        self._under_answers: dict[tuple[str, str], tuple[bool, ...]] = {}

    def match(
        self, functions: Sequence[Function], files: Sequence[str], dso_names: Sequence[str], places: Places
    ) -> RuleMatches:
        """The rules that match each place, in the order in which they are to be tried (see ``RuleMatches``)."""
        self._prepare(len(places))
        start = np.zeros(len(places) + 1, np.int32)
        found: list[tuple[int, int, int]] = []
        rows = zip(places.function.tolist(), places.file.tolist(), places.dso.tolist(), strict=True)
        for number, (function_row, file_row, dso_row) in enumerate(rows):
            function = functions[function_row]
            file = files[file_row] if file_row >= 0 else ""
            found += self._matches(function, file, dso_names[dso_row] if dso_row >= 0 else "")
            start[number + 1] = len(found)
        columns = np.array(found, np.int32).reshape(len(found), 3)
        return RuleMatches(
            start=start,
            rule=columns[:, 0].copy(),
            category=columns[:, 1].copy(),
            under=columns[:, 2].copy(),
            categories=tuple(self._category_rows),
            groups=tuple(self._groups),
            is_passthrough=np.array(self._is_passthrough, np.bool_),
            under_patterns=tuple(self._under_rows),
            under_hits=self._under_hits(functions),
        )

    def _prepare(self, place_count: int) -> None:
        """Makes quick tests of the patterns once there is so much to match that they save more than they cost."""
        if place_count >= _MANY_PLACES and not self._has_quick_tests:
            self._has_quick_tests = True
            patterns = [rule.function for rule in self._rules]
            self._is_in = [None if pattern is None else presence_test(pattern.text) for pattern in patterns]
            self._rules_of_dso.clear()

    def _matches(self, function: Function, file: str, dso: str) -> tuple[tuple[int, int, int], ...]:
        """(rule, category, under pattern) of every rule that can take the place."""
        place = _Place(*_searched_names(function), file, dso)
        answer = self._answers.get(place)
        if answer is None:
            answer = self._answers[place] = tuple(self._try_rules(place))
        return answer

    def _try_rules(self, place: _Place) -> list[tuple[int, int, int]]:
        found = []
        key, trait_key = place.key, place.trait_key
        for row, is_in, is_transparent in self._candidates(place.dso):
            # Most rules fail here, thousands of times; only what is left is worth a call.
            if is_in is not None and not is_in(key) and (not trait_key or is_transparent or not is_in(trait_key)):
                continue
            rule = self._rules[row]
            category = _category_of(rule, place)
            if category is None:
                continue
            under = -1 if rule.under is None else self._under_rows[rule.under.text]
            found.append((row, -1 if is_transparent else self._category_row(category, rule), under))
            if under < 0:
                break
        return found

    def _candidates(self, dso: str) -> tuple[_Candidate, ...]:
        """The rules whose ``dso`` pattern lets this DSO pass, in the order of trial."""
        known = self._rules_of_dso.get(dso)
        if known is None:
            rows = [row for row in self._order if (pattern := self._rules[row].dso) is None or pattern.search(dso)]
            known = self._rules_of_dso[dso] = tuple((row, self._is_in[row], self._rules[row].is_transparent) for row in rows)
        return known

    def _category_row(self, name: str, rule: Rule) -> int:
        row = self._category_rows.setdefault(name, len(self._category_rows))
        if row == len(self._groups):
            namesakes = [other for other in self._rules if other.category == rule.category]
            self._groups.append(next((other.group for other in namesakes if other.group), ""))
            self._is_passthrough.append(namesakes[0].is_passthrough)
        return row

    def _under_hits(self, functions: Sequence[Function]) -> BoolColumn:
        hits = np.zeros((len(self._under_tests), len(functions)), np.bool_)
        if not self._under_tests:
            return hits
        for row, function in enumerate(functions):
            names = _searched_names(function)
            answer = self._under_answers.get(names)
            if answer is None:
                key, trait_key = names
                answer = tuple(bool(is_in(key) or (trait_key and is_in(trait_key))) for is_in in self._under_tests)
                self._under_answers[names] = answer
            if any(answer):
                hits[:, row] = answer
        return hits


def _searched_names(function: Function) -> tuple[str, str]:
    """The names that patterns are searched in.  Code without a name has only its DSO's: thousands of addresses in a stripped
    file are one question."""
    if function.name_source is NameSource.UNRESOLVED:
        return function.key.partition("+0x")[0], ""
    return function.key, function.trait_key


def _category_of(rule: Rule, place: _Place) -> str | None:
    """The category that the rule gives to this place ("" for a transparent rule), or None when it does not match."""
    groups = {"dso": place.dso}
    if rule.function is not None:
        found = rule.function.search(place.key)
        if found is None and place.trait_key and not rule.is_transparent:
            found = rule.function.search(place.trait_key)
        if found is None:
            return None
        groups |= found.groupdict("")
    for pattern, text in ((rule.file, place.file), (rule.dso, place.dso)):
        if pattern is not None:
            found = pattern.search(text) if text else None
            if found is None:
                return None
            groups |= found.groupdict("")
    category = PLACEHOLDER.sub(lambda placeholder: groups[placeholder[1]], rule.category)
    # The rule file cannot tell what an expansion gives: a file may be called "total", and a group may match nothing.
    return f"{category or 'nameless'} (by rule)" if category in _TAKEN and not rule.is_transparent else category
