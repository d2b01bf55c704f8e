"""What a rule set did on an arm: the places that it saw, and which of its rules took frames and weight."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from profiler.analysis.attribution.attributed_run import AttributedRun
from profiler.analysis.statistics.exact_sums import sums_by_group
from profiler.model.category import RuleSet
from profiler.model.function import NameSource
from profiler.model.quick_dataclass import dataclass
from profiler.model.rule_finding import NamedPlace


@dataclass(frozen=True, slots=True)
class RunRuleUse:
    """One run's part of ``RuleUse``."""

    places: tuple[NamedPlace, ...]
    taken: Mapping[str, int]
    total: int


def rule_use(run: AttributedRun, rule_set: RuleSet) -> RunRuleUse:
    """``taken``: origin of every rule that took a frame -> weight of the samples it named, in one run."""
    count = len(rule_set.rules)
    rule_of_match = np.append(run.matches.rule, count)
    match = run.attribution.match
    rows = np.unique(rule_of_match[match])
    leaf = run.attribution.leaf
    naming = np.where(leaf >= 0, rule_of_match[match[leaf]], count)
    weight = sums_by_group(naming, run.weight, count + 1).tolist()
    taken = {rule_set.rules[row].origin: weight[row] for row in rows.tolist() if row < count}
    return RunRuleUse(tuple(_places(run)), taken, run.total)


def merge_rule_use(runs: Iterable[RunRuleUse]) -> RunRuleUse:
    """Places of all runs, each once; weights added."""
    places: dict[NamedPlace, None] = {}
    taken: dict[str, int] = {}
    total = 0
    for run in runs:
        places |= dict.fromkeys(run.places)
        for origin, weight in run.taken.items():
            taken[origin] = taken.get(origin, 0) + weight
        total += run.total
    return RunRuleUse(tuple(places), taken, total)


def _places(run: AttributedRun) -> Iterable[NamedPlace]:
    symbolized, places = run.symbolized, run.stacks.places
    dso_names = [dso.name for dso in symbolized.capture.dsos]
    rows = zip(places.function.tolist(), places.file.tolist(), places.dso.tolist(), strict=True)
    for function_row, file_row, dso_row in rows:
        function = symbolized.functions[function_row]
        is_nameless = function.name_source is NameSource.UNRESOLVED
        yield NamedPlace(
            key=function.key.partition("+0x")[0] if is_nameless else function.key,
            trait_key="" if is_nameless else function.trait_key,
            file=symbolized.files[file_row] if file_row >= 0 else "",
            dso=dso_names[dso_row] if dso_row >= 0 else "",
        )
