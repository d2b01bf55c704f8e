"""Which rules match which places; what only a whole stack can decide (``under``) is left to ``analysis.attribute``."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from profiler.model.arrays import BoolColumn
from profiler.model.category import Places, Rule, RuleMatches, RuleSet
from profiler.model.symbols import Function
from profiler.rules.loader import PLACEHOLDER


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
        self._category_rows: dict[str, int] = {}
        self._groups: list[str] = []
        self._is_passthrough: list[bool] = []
        self._under_rows: dict[str, int] = {}
        self._under_patterns: list[re.Pattern[str]] = []
        for rule in self._rules:
            if rule.under is not None and rule.under.pattern not in self._under_rows:
                self._under_rows[rule.under.pattern] = len(self._under_rows)
                self._under_patterns.append(rule.under)
        self._rules_of_dso: dict[str, tuple[int, ...]] = {}
        self._answers: dict[tuple[str, str, str, str], tuple[tuple[int, int, int], ...]] = {}
        self._under_answers: dict[tuple[str, str], tuple[bool, ...]] = {}

    def match(
        self, functions: Sequence[Function], files: Sequence[str], dso_names: Sequence[str], places: Places
    ) -> RuleMatches:
        """The rules that match each place, in the order in which they are to be tried (see ``RuleMatches``)."""
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

    def _matches(self, function: Function, file: str, dso: str) -> tuple[tuple[int, int, int], ...]:
        """(rule, category, under pattern) of every rule that can take the place."""
        identity = (function.key, function.trait_key, file, dso)
        answer = self._answers.get(identity)
        if answer is None:
            answer = self._answers[identity] = tuple(self._try_rules(function, file, dso))
        return answer

    def _try_rules(self, function: Function, file: str, dso: str) -> list[tuple[int, int, int]]:
        found = []
        for row in self._candidates(dso):
            rule = self._rules[row]
            category = _category_of(rule, function, file, dso)
            if category is None:
                continue
            under = -1 if rule.under is None else self._under_rows[rule.under.pattern]
            found.append((row, -1 if rule.is_transparent else self._category_row(category, rule), under))
            if under < 0:
                break
        return found

    def _candidates(self, dso: str) -> tuple[int, ...]:
        """Rows of the rules whose ``dso`` pattern lets this DSO pass, in the order of trial."""
        rows = self._rules_of_dso.get(dso)
        if rows is None:
            rows = tuple(row for row in self._order if (pattern := self._rules[row].dso) is None or pattern.search(dso))
            self._rules_of_dso[dso] = rows
        return rows

    def _category_row(self, name: str, rule: Rule) -> int:
        row = self._category_rows.setdefault(name, len(self._category_rows))
        if row == len(self._groups):
            namesakes = [other for other in self._rules if other.category == rule.category]
            self._groups.append(next((other.group for other in namesakes if other.group), ""))
            self._is_passthrough.append(namesakes[0].is_passthrough)
        return row

    def _under_hits(self, functions: Sequence[Function]) -> BoolColumn:
        hits = np.zeros((len(self._under_patterns), len(functions)), np.bool_)
        if not self._under_patterns:
            return hits
        for row, function in enumerate(functions):
            identity = (function.key, function.trait_key)
            answer = self._under_answers.get(identity)
            if answer is None:
                answer = tuple(
                    bool(pattern.search(function.key) or (function.trait_key and pattern.search(function.trait_key)))
                    for pattern in self._under_patterns
                )
                self._under_answers[identity] = answer
            if any(answer):
                hits[:, row] = answer
        return hits


def _category_of(rule: Rule, function: Function, file: str, dso: str) -> str | None:
    """The category that the rule gives to this place ("" for a transparent rule), or None when it does not match."""
    groups = {"dso": dso}
    if rule.function is not None:
        found = rule.function.search(function.key)
        if found is None and function.trait_key and not rule.is_transparent:
            found = rule.function.search(function.trait_key)
        if found is None:
            return None
        groups |= found.groupdict("")
    if rule.file is not None:
        found = rule.file.search(file) if file else None
        if found is None:
            return None
        groups |= found.groupdict("")
    if rule.dso is not None:
        found = rule.dso.search(dso)
        if found is None:
            return None
        groups |= found.groupdict("")
    return PLACEHOLDER.sub(lambda placeholder: groups[placeholder[1]], rule.category)
