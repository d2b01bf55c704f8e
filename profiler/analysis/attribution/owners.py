"""Who causes the pass-through categories, and what ``other`` consists of: per run, then merged over runs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from profiler.analysis.attribution.attributed_run import AttributedRun
from profiler.analysis.statistics.exact_sums import sums_by_group
from profiler.model.arrays import BoolColumn, Int32Column, Int64Column
from profiler.model.costs import OtherFunction, OwnerCell
from profiler.model.function import Function, NameSource
from profiler.model.function_table import FunctionTable

OTHER_LIMIT = 10


def owner_cells(run: AttributedRun) -> tuple[OwnerCell, ...]:
    """The weight of each leaf category by owner category in one run; the cells of a leaf add up to it exactly."""
    names = run.category_names()
    count = len(names)
    leaf, owner = (
        np.where(column < 0, count - 1, column).astype(np.int64)
        for column in (run.attribution.leaf_category, run.attribution.owner_category)
    )
    sums = sums_by_group(leaf * count + owner, run.weight, count * count)
    return tuple(OwnerCell(names[cell // count], names[cell % count], int(sums[cell])) for cell in np.flatnonzero(sums))


def merge_owner_cells(cells_of_runs: Iterable[Sequence[OwnerCell]]) -> tuple[OwnerCell, ...]:
    """Cells added over runs: heaviest leaf first, within it the heaviest owner first, ties by name."""
    weights: dict[tuple[str, str], int] = {}
    leaf_weights: dict[str, int] = {}
    for cells in cells_of_runs:
        for cell in cells:
            weights[cell.leaf, cell.owner] = weights.get((cell.leaf, cell.owner), 0) + cell.weight
            leaf_weights[cell.leaf] = leaf_weights.get(cell.leaf, 0) + cell.weight
    merged = [OwnerCell(leaf, owner, weight) for (leaf, owner), weight in weights.items()]
    return tuple(sorted(merged, key=lambda cell: (-leaf_weights[cell.leaf], cell.leaf, -cell.weight, cell.owner)))


def other_functions(run: AttributedRun, limit: int | None = None) -> tuple[OtherFunction, ...]:
    """The functions whose own time no rule took in one run, with a rule line for each.

    ``limit``: places without a name that are lighter than so many others are left out.  They may be thousands, and what is not
    merged with further runs shows none of them.
    """
    places = run.stacks.places
    rows = np.flatnonzero((run.attribution.leaf_category < 0) & (run.weight > 0))
    self_places = run.stacks.place[run.attribution.self_row[rows]]
    sums = sums_by_group(self_places, run.weight[rows], len(places))
    dso_names = (*(dso.name for dso in run.symbolized.capture.dsos), "")
    found = []
    # Thousands of addresses of a stripped file have one line.
    lines: dict[tuple[str, str], str] = {}
    taken = np.flatnonzero(sums)
    if limit is not None:
        taken = taken[_may_be_shown(places.function[taken], sums[taken], run.symbolized.functions, limit)]
    columns = (column[taken].tolist() for column in (places.function, places.dso, sums))
    for function_row, dso_row, weight in zip(*columns, strict=True):
        function = run.symbolized.functions[function_row]
        pair = _key_and_text(function, dso_names[dso_row])
        if pair not in lines:
            lines[pair] = _rule_line(*pair)
        found.append(OtherFunction(function.key, weight, lines[pair]))
    return tuple(found)


def _may_be_shown(function: Int32Column, weight: Int64Column, functions: FunctionTable, limit: int) -> BoolColumn:
    """Which of some functions can be among the ``limit`` heaviest by name; only places without a name are ruled out."""
    weight_of = sums_by_group(function, weight, len(functions))
    nameless = weight_of[len(functions.named) :]
    if len(nameless) <= limit:
        return np.ones(len(function), np.bool_)
    least = np.partition(nameless, -limit)[-limit]
    may_be_shown: BoolColumn = (function < len(functions.named)) | (weight_of[function] >= least)
    return may_be_shown


def merge_other_functions(
    functions_of_runs: Iterable[Sequence[OtherFunction]], limit: int = OTHER_LIMIT
) -> tuple[OtherFunction, ...]:
    """The heaviest functions over all runs, heaviest first, ties by name."""
    weights: dict[str, int] = {}
    rules: dict[str, str] = {}
    for functions in functions_of_runs:
        for entry in functions:
            weights[entry.name] = weights.get(entry.name, 0) + entry.weight
            rules[entry.name] = min(entry.suggested_rule, rules.get(entry.name, entry.suggested_rule))
    heaviest = sorted(weights, key=lambda name: (-weights[name], name))[:limit]
    return tuple(OtherFunction(name, weights[name], rules[name]) for name in heaviest)


def _key_and_text(function: Function, dso: str) -> tuple[str, str]:
    """What a rule has to look at to take this function; code without a name can only be taken by its DSO."""
    is_nameless = function.name_source is NameSource.UNRESOLVED and bool(dso)
    return ("dso", dso) if is_nameless else ("function", function.key)


def _rule_line(key: str, text: str) -> str:
    """A line of a rule file for exactly this text."""
    pattern = f"^{re.escape(text)}$".replace(r"\ ", " ").replace(r"\-", "-")
    if "'" not in pattern and pattern.isprintable():
        return f"{key} = '{pattern}'"
    escaped = "".join(_in_basic_string(character) for character in pattern)
    return f'{key} = "{escaped}"'


def _in_basic_string(character: str) -> str:
    if character in '\\"':
        return "\\" + character
    return character if character.isprintable() else f"\\U{ord(character):08x}"
