"""Which rules match which places; what only a whole stack can decide (``under``) is left to ``attribution.attribute``."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from profiler.model.arrays import BoolColumn, Int64Column
from profiler.model.category import OTHER, Places, Rule, RuleMatches, RuleSet
from profiler.model.function import NameSource
from profiler.model.function_table import FunctionTable
from profiler.model.rule_pattern import RulePattern
from profiler.rules.loader import NAMES_OF_SUMS, PLACEHOLDER
from profiler.rules.name_search import NameSearch

_TAKEN = frozenset({OTHER, *NAMES_OF_SUMS, ""})


class _Place(NamedTuple):
    """What rules look at; "" = unknown."""

    key: str
    trait_key: str
    file: str
    dso: str


# (key, trait key) of a function
_Names = tuple[str, str]
_NO_NAMES = "", ""


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
        # Places of the rules in that order: of those without a function pattern, and of the others for each name that was
        # looked through and in which their pattern is found.
        self._nameless = tuple(place for place, row in enumerate(order) if self._rules[row].function is None)
        self._known_names: set[str] = set()
        self._found_in: dict[str, list[int]] = {}
        self._category_rows: dict[str, int] = {}
        self._groups: list[str] = []
        self._is_passthrough: list[bool] = []
        self._under_rows: dict[str, int] = {}
        self._under_patterns: list[RulePattern] = []
        for rule in self._rules:
            if rule.under is not None and rule.under.text not in self._under_rows:
                self._under_rows[rule.under.text] = len(self._under_rows)
                self._under_patterns.append(rule.under)
        self._under_found: list[set[str]] = [set() for _ in self._under_patterns]
        self._nameless_of_file: dict[tuple[str, str], list[int]] = {}
        self._places_of_dso: dict[str, frozenset[int]] = {}
        self._categories_of_file: dict[tuple[int, str, str], str | None] = {}
        self._answers: dict[tuple[str, str, str, str], tuple[tuple[int, int, int], ...]] = {}

    def match(self, functions: FunctionTable, files: Sequence[str], dso_names: Sequence[str], places: Places) -> RuleMatches:
        """The rules that match each place, in the order in which they are to be tried (see ``RuleMatches``)."""
        names, names_of_function = _searched_names(functions)
        self._look_through(names)
        names_of_place = names_of_function[places.function]
        question, first = _questions(names, names_of_place, places)
        answers = [
            self._matches(names[row], files[file] if file >= 0 else "", dso_names[dso] if dso >= 0 else "")
            for row, file, dso in zip(
                names_of_place[first].tolist(), places.file[first].tolist(), places.dso[first].tolist(), strict=True
            )
        ]
        counts = np.array([len(answer) for answer in answers], np.int32)
        start = np.zeros(len(places) + 1, np.int32)
        np.cumsum(counts[question], out=start[1:])
        found = np.array([match for answer in answers for match in answer], np.int32).reshape(-1, 3)
        shift = (np.cumsum(counts) - counts)[question] - start[:-1]
        columns = found[np.repeat(shift, counts[question]) + np.arange(int(start[-1]))]
        return RuleMatches(
            start=start,
            rule=columns[:, 0].copy(),
            category=columns[:, 1].copy(),
            under=columns[:, 2].copy(),
            categories=tuple(self._category_rows),
            groups=tuple(self._groups),
            is_passthrough=np.array(self._is_passthrough, np.bool_),
            under_patterns=tuple(self._under_rows),
            under_hits=self._under_hits(names)[:, names_of_function],
        )

    def _look_through(self, names: Sequence[_Names]) -> None:
        """Finds those of the names that are new in which each pattern is found."""
        distinct = dict.fromkeys(itertools.chain.from_iterable(names))
        new = [name for name in distinct if name and name not in self._known_names]
        self._known_names.update(new)
        search = NameSearch(new)
        for place, row in enumerate(self._order):
            function = self._rules[row].function
            for name in search.with_pattern(function) if function is not None else ():
                self._found_in.setdefault(name, []).append(place)
        for pattern, found in zip(self._under_patterns, self._under_found, strict=True):
            found.update(search.with_pattern(pattern))

    def _matches(self, names: _Names, file: str, dso: str) -> tuple[tuple[int, int, int], ...]:
        """(rule, category, under pattern) of every rule that can take the place."""
        # Names in which no pattern is found are alike, and most are.
        known_names = names if any(name in self._found_in for name in names) else _NO_NAMES
        key = (*known_names, file, dso)
        answer = self._answers.get(key)
        if answer is None:
            answer = self._answers[key] = tuple(self._try_rules(_Place(*key)))
        return answer

    def _try_rules(self, place: _Place) -> list[tuple[int, int, int]]:
        found = []
        for row in self._candidates(place):
            rule = self._rules[row]
            category = self._category_of_file(row, place) if rule.function is None else _category_of(rule, place)
            if category is None:
                continue
            under = -1 if rule.under is None else self._under_rows[rule.under.text]
            found.append((row, -1 if rule.is_transparent else self._category_row(category, rule), under))
            if under < 0:
                break
        return found

    def _candidates(self, place: _Place) -> list[int]:
        """The rules whose ``function`` and ``dso`` patterns let this place pass, and of those without a ``function`` pattern
        the ones that match, in the order of trial."""
        by_trait = (at for at in self._found_in.get(place.trait_key, ()) if not self._rules[self._order[at]].is_transparent)
        by_name = {*self._found_in.get(place.key, ()), *by_trait}
        named = self._passing(place.dso).intersection(by_name)
        return [self._order[at] for at in sorted([*named, *self._nameless_matches(place)])]

    def _nameless_matches(self, place: _Place) -> list[int]:
        key = place.file, place.dso
        known = self._nameless_of_file.get(key)
        if known is None:
            passing = [at for at in self._nameless if at in self._passing(place.dso)]
            matching = [at for at in passing if self._category_of_file(self._order[at], place) is not None]
            known = self._nameless_of_file[key] = matching
        return known

    def _passing(self, dso: str) -> frozenset[int]:
        known = self._places_of_dso.get(dso)
        if known is None:
            patterns = [self._rules[row].dso for row in self._order]
            passing = (at for at, pattern in enumerate(patterns) if pattern is None or pattern.search(dso))
            known = self._places_of_dso[dso] = frozenset(passing)
        return known

    def _category_of_file(self, row: int, place: _Place) -> str | None:
        """``_category_of`` for a rule that looks at no function: the same for all functions of a file."""
        key = row, place.file, place.dso
        if key not in self._categories_of_file:
            self._categories_of_file[key] = _category_of(self._rules[row], place)
        return self._categories_of_file[key]

    def _category_row(self, name: str, rule: Rule) -> int:
        row = self._category_rows.setdefault(name, len(self._category_rows))
        if row == len(self._groups):
            namesakes = [other for other in self._rules if other.category == rule.category]
            self._groups.append(next((other.group for other in namesakes if other.group), ""))
            self._is_passthrough.append(namesakes[0].is_passthrough)
        return row

    def _under_hits(self, names: Sequence[_Names]) -> BoolColumn:
        hits = np.zeros((len(self._under_found), len(names)), np.bool_)
        for row, found in enumerate(self._under_found):
            if found:
                hits[row] = [key in found or trait_key in found for key, trait_key in names]
        return hits


def _questions(names: Sequence[_Names], names_of_place: Int64Column, places: Places) -> tuple[Int64Column, Int64Column]:
    """(number of each place's question, one place of each question)."""
    numbers: dict[_Names, int] = {}
    name = np.array([numbers.setdefault(pair, len(numbers)) for pair in names], np.int64)[names_of_place]
    file, dso = places.file.astype(np.int64) + 1, places.dso.astype(np.int64) + 1
    keys = (name * (int(file.max(initial=0)) + 1) + file) * (int(dso.max(initial=0)) + 1) + dso
    _, first, number = np.unique(keys, return_index=True, return_inverse=True)
    # In the order in which they are met: it numbers the categories.
    rank = np.argsort(first)
    place_of = np.empty(len(rank), np.int64)
    place_of[rank] = np.arange(len(rank))
    return place_of[number], first[rank]


def _searched_names(functions: FunctionTable) -> tuple[list[_Names], Int64Column]:
    """(names that patterns are searched in, row of those of each function).  Code without a name has only its DSO's: thousands
    of addresses in a stripped file are one question."""
    named = [
        (function.key, function.trait_key)
        if function.name_source is not NameSource.UNRESOLVED
        else (function.key.partition("+0x")[0], "")
        for function in functions.named
    ]
    rows = np.concatenate([np.arange(len(named)), functions.file + np.int64(len(named))])
    return [*named, *((name, "") for name in functions.file_names)], rows


def _category_of(rule: Rule, place: _Place) -> str | None:
    """The category that the rule gives to this place ("" for a transparent rule), or None when it does not match.  Its
    function pattern, if any, is known to match."""
    groups = {"dso": place.dso}
    if rule.function is not None and "{" in rule.category:
        found = rule.function.search(place.key) or rule.function.search(place.trait_key)
        groups |= found.groupdict("") if found is not None else {}
    for pattern, text in ((rule.file, place.file), (rule.dso, place.dso)):
        if pattern is not None:
            found = pattern.search(text) if text else None
            if found is None:
                return None
            groups |= found.groupdict("")
    category = PLACEHOLDER.sub(lambda placeholder: groups[placeholder[1]], rule.category)
    # The rule file cannot tell what an expansion gives: a file may be called "total", and a group may match nothing.
    return f"{category or 'nameless'} (by rule)" if category in _TAKEN and not rule.is_transparent else category
