"""Which rule took a function's time, and which frames were passed over on the way."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from profiler.analysis.attribution.attributed_run import AttributedRun
from profiler.analysis.attribution.stack_patterns import stacks_through
from profiler.analysis.statistics.exact_sums import sums_by_group
from profiler.model.arrays import BoolColumn, Int64Column
from profiler.model.category import Rule, RuleSet
from profiler.model.explanation import Explanation, PassedFrame
from profiler.model.quick_dataclass import dataclass

NO_RULE = "no rule matches"


@dataclass(frozen=True, slots=True)
class RunExplanations:
    """One run's explanations, without shares.  ``named``: of samples with a match among the frames from the innermost to the
    naming one; ``anywhere``: with a match on any frame.  ``total``: the run's weight."""

    named: tuple[Explanation, ...]
    anywhere: tuple[Explanation, ...]
    total: int


def explain_run(run: AttributedRun, rule_set: RuleSet, pattern: re.Pattern[str]) -> RunExplanations:
    """Explains one run's samples that have a function matching ``pattern``, searched in shown and canonical names."""
    is_match = _matching_rows(run, pattern)
    return RunExplanations(
        named=_explanations(run, rule_set, _named_within(run, is_match)),
        anywhere=_explanations(run, rule_set, stacks_through(run.stacks, is_match)),
        total=run.total,
    )


def merge_explanations(runs: Sequence[RunExplanations]) -> tuple[Explanation, ...]:
    """The ``named`` explanations of all runs, or where there are none those ``anywhere``; heaviest first, ties by name."""
    total = sum(run.total for run in runs)
    found: dict[tuple[str, ...], Explanation] = {}
    has_named = any(run.named for run in runs)
    for run in runs:
        for explanation in run.named if has_named else run.anywhere:
            _add(found, explanation)
    shared = (replace(entry, share=entry.weight / total if total else 0.0, runs=len(runs)) for entry in found.values())
    return tuple(sorted(shared, key=lambda entry: (-entry.weight, entry.function, entry.named_by, entry.rule_origin)))


def _matching_rows(run: AttributedRun, pattern: re.Pattern[str]) -> BoolColumn:
    functions = [
        any(pattern.search(name) for name in (function.name, function.key, function.trait_key) if name)
        for function in run.symbolized.functions
    ]
    return np.array(functions, np.bool_)[run.stacks.function()]


def _named_within(run: AttributedRun, is_match: BoolColumn) -> BoolColumn:
    """Rows with a match among the frames from the innermost to the naming one."""
    count = np.zeros(len(run.stacks), np.int64)
    for level in run.stacks.levels:
        caller = run.stacks.prefix[level]
        count[level] = is_match[level] + np.where(caller >= 0, count[caller], 0)
    leaf = run.attribution.leaf
    beyond = np.append(run.stacks.prefix, np.int32(-1))[leaf]
    return count > np.append(count, 0)[beyond]


@dataclass(frozen=True, slots=True)
class _Group:
    """Rows that are explained alike: their heaviest row, and the sums over them."""

    row: int
    weight: int
    samples: int


def _explanations(run: AttributedRun, rule_set: RuleSet, chosen: BoolColumn) -> tuple[Explanation, ...]:
    rows = np.flatnonzero(chosen & (run.count > 0))
    return tuple(_explanation(run, rule_set, group) for group in _groups(run, rows))


def _groups(run: AttributedRun, rows: Int64Column) -> list[_Group]:
    attribution = run.attribution
    function = run.stacks.function()
    leaf = attribution.leaf[rows]
    naming = np.where(leaf >= 0, function[leaf], -1)
    rule = np.where(leaf >= 0, attribution.match[leaf], -1)
    columns = np.stack([function[rows], naming, rule, attribution.owner_category[rows]])
    _, group = np.unique(columns, axis=1, return_inverse=True)
    count = int(group.max(initial=-1)) + 1
    weight = sums_by_group(group, run.weight[rows], count)
    samples = sums_by_group(group, run.count[rows], count)
    order = np.lexsort((rows, -run.weight[rows], group))
    first = np.searchsorted(group[order], np.arange(count))
    heaviest = rows[order][first]
    return [_Group(*values) for values in zip(heaviest.tolist(), weight.tolist(), samples.tolist(), strict=True)]


def _explanation(run: AttributedRun, rule_set: RuleSet, group: _Group) -> Explanation:
    attribution, functions = run.attribution, run.symbolized.functions
    names = run.category_names()
    function = run.stacks.function()
    rows = run.stacks.rows_leaf_first(group.row)
    leaf = int(attribution.leaf[group.row])
    rule = rule_set.rules[run.matches.rule[attribution.match[leaf]]] if leaf >= 0 else None
    passed = rows[: rows.index(leaf)] if leaf >= 0 else rows
    return Explanation(
        function=functions[function[group.row]].key,
        category=names[attribution.leaf_category[group.row]],
        owner=names[attribution.owner_category[group.row]],
        rule_origin=rule.origin if rule else "",
        rule_pattern=_found_patterns(run, rule, rows[len(passed) :]) if rule else "",
        named_by=functions[function[leaf]].key if leaf >= 0 else "",
        passed_over=tuple(PassedFrame(functions[function[row]].key, _reason(run, rule_set, row)) for row in passed),
        stack_leaf_first=tuple(functions[function[row]].key for row in rows),
        weight=group.weight,
        samples=group.samples,
        share=0.0,
    )


def _reason(run: AttributedRun, rule_set: RuleSet, row: int) -> str:
    if not run.attribution.is_transparent[row]:
        return NO_RULE
    return f"transparent: {rule_set.rules[run.matches.rule[run.attribution.match[row]]].origin}"


def _found_patterns(run: AttributedRun, rule: Rule, naming_and_outer: Sequence[int]) -> str:
    """What of the rule was found, as ``key = 'pattern'`` in the order function, file, dso, under."""
    places, place = run.stacks.places, run.stacks.place[naming_and_outer[0]]
    functions = [run.symbolized.functions[row] for row in run.stacks.function()[list(naming_and_outer)].tolist()]
    names = [(function.key, function.trait_key) for function in functions]
    file, dso = int(places.file[place]), int(places.dso[place])
    searched = (
        ("function", rule.function, names[0]),
        ("file", rule.file, run.symbolized.files[file : file + 1]),
        ("dso", rule.dso, [entry.name for entry in run.symbolized.capture.dsos[dso : dso + 1]]),
        ("under", rule.under, [name for outer in names[1:] for name in outer]),
    )
    found = ((key, pattern.alternative_found_in(texts)) for key, pattern, texts in searched if pattern is not None)
    return ", ".join(f"{key} = '{text}'" for key, text in found)


def _add(found: dict[tuple[str, ...], Explanation], new: Explanation) -> None:
    key = new.function, new.category, new.owner, new.rule_origin, new.named_by
    old = found.get(key)
    if old is None:
        found[key] = new
        return
    heavier = min(old, new, key=lambda entry: (-entry.weight, entry.stack_leaf_first))
    found[key] = replace(heavier, weight=old.weight + new.weight, samples=old.samples + new.samples)
