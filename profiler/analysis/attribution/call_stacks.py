"""Call stacks of an arm, merged over its runs by function."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from profiler.analysis.attribution.attributed_run import AttributedRun
from profiler.analysis.attribution.level_order import sums_of_subtrees
from profiler.analysis.attribution.prefix_merge import merge_equal_paths
from profiler.analysis.statistics.exact_sums import sums_by_group
from profiler.model.arrays import Int32Column, Int64Column, distinct
from profiler.model.call_stacks import CallFrame, CallStacks, ProcessWeights
from profiler.model.event import Event
from profiler.model.quick_dataclass import dataclass
from profiler.model.stack_table import depth_levels

_Shown = tuple[int, str, str, int]  # (-weight, complete name, file, line): the smallest is shown


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RunTree:
    """One run by function: ``box`` per row is a row of ``boxes``, (function key, category) pairs; ``weight`` is the row's
    own; ``shown`` says how each box is shown.  ``processes``: whose the weight is."""

    processes: ProcessWeights
    prefix: Int32Column
    box: Int64Column
    boxes: tuple[tuple[str, str], ...]
    weight: Int64Column
    shown: tuple[_Shown, ...]


def merge_call_stacks(arm: str, event: Event, trees: Sequence[RunTree]) -> CallStacks:
    """The stacks of all runs as one prefix tree, a weight column per run; rows by depth, then caller, then frame.

    Stacks that no admitted sample has are left out.  ``frames`` are sorted by function key and category.
    """
    boxes = sorted({tree.boxes[box] for tree in trees for box in distinct(tree.box).tolist()})
    starts = np.cumsum([0, *(len(tree.prefix) for tree in trees)]).tolist()
    prefix, label = _forest(trees, boxes, starts)
    merged = merge_equal_paths(prefix, label, depth_levels(prefix))
    weight = np.zeros((len(merged.prefix), len(trees)), np.int64)
    for run, tree in enumerate(trees):
        weight[:, run] = sums_by_group(merged.row_of[starts[run] : starts[run + 1]], tree.weight, len(merged.prefix))
    categories = sorted({category for _, category in boxes})
    category_of_box = np.array([categories.index(category) for _, category in boxes], np.int32)
    return CallStacks(
        arm=arm,
        event=event.name,
        unit=event.unit,
        processes=_merged_processes(trees, merged.row_of, starts),
        frames=_frames(trees, boxes),
        prefix=merged.prefix,
        frame=merged.label.astype(np.int32),
        category=category_of_box[merged.label],
        categories=tuple(categories),
        weight=weight,
    )


def _merged_processes(trees: Sequence[RunTree], row_of: Int32Column, starts: Sequence[int]) -> ProcessWeights:
    names = sorted({name for tree in trees for name in tree.processes.names})
    number_of = {name: number for number, name in enumerate(names)}
    stacks, processes, weights = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)], [np.zeros(0, np.int64)]
    for tree, start in zip(trees, starts, strict=False):
        own = tree.processes
        stacks.append(row_of[own.stack + start])
        processes.append(np.array([number_of[name] for name in own.names], np.int32)[own.process])
        weights.append(own.weight)
    return _process_weights(names, np.concatenate(stacks), np.concatenate(processes), np.concatenate(weights))


def _process_weights(names: Sequence[str], stack: Int32Column, process: Int32Column, weight: Int64Column) -> ProcessWeights:
    """Sums by (stack, process); pairs without weight are left out."""
    pairs, pair = np.unique(stack.astype(np.int64) * max(len(names), 1) + process, return_inverse=True)
    sums = sums_by_group(pair, weight, len(pairs))
    stack_of, process_of = np.divmod(pairs[sums > 0], max(len(names), 1))
    return ProcessWeights(tuple(names), stack_of.astype(np.int32), process_of.astype(np.int32), sums[sums > 0])


def _forest(
    trees: Sequence[RunTree], boxes: Sequence[tuple[str, str]], starts: Sequence[int]
) -> tuple[Int32Column, Int64Column]:
    """The trees of all runs one after the other, boxes in the numbers of ``boxes``."""
    number_of = {box: number for number, box in enumerate(boxes)}
    prefixes, labels = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)]
    for tree, start in zip(trees, starts, strict=False):
        numbers = np.array([number_of.get(box, -1) for box in tree.boxes], np.int64)
        prefixes.append(np.where(tree.prefix >= 0, tree.prefix + start, -1).astype(np.int32))
        labels.append(numbers[tree.box])
    return np.concatenate(prefixes), np.concatenate(labels)


def _frames(trees: Sequence[RunTree], boxes: Sequence[tuple[str, str]]) -> tuple[CallFrame, ...]:
    best: dict[tuple[str, str], _Shown] = {}
    for tree in trees:
        for box, shown in zip(tree.boxes, tree.shown, strict=True):
            best[box] = min(shown, best.get(box, shown))
    return tuple(CallFrame(*best[box][1:], category=box[1]) for box in boxes)


def run_tree(run: AttributedRun) -> RunTree:
    """The call tree of one run's admitted samples."""
    stacks = run.stacks
    boxes, box = _boxes_of_rows(run)
    merged = merge_equal_paths(stacks.prefix, box, stacks.levels)
    weight = sums_by_group(merged.row_of, run.weight, len(merged.prefix))
    is_used = sums_of_subtrees(merged.levels, merged.prefix, weight) > 0
    renumbered = np.append(np.cumsum(is_used) - 1, -1).astype(np.int32)
    return RunTree(
        processes=_processes(run, renumbered[merged.row_of]),
        prefix=renumbered[merged.prefix[is_used]],
        box=merged.label[is_used],
        boxes=boxes,
        weight=weight[is_used],
        shown=_shown(run, box, len(boxes)),
    )


def _processes(run: AttributedRun, row_of: Int32Column) -> ProcessWeights:
    """``row_of``: row of the run's tree for each logical row."""
    capture, admitted = run.symbolized.capture, run.admitted
    samples = capture.samples
    string = capture.threads.process_name[samples.thread[admitted]]
    used, process = np.unique(string, return_inverse=True)
    names = [capture.strings[each] if each >= 0 else "" for each in used.tolist()]
    row = row_of[run.stacks.innermost[samples.stack[admitted]]]
    return _process_weights(names, row, process.astype(np.int32), samples.weight[admitted])


def _boxes_of_rows(run: AttributedRun) -> tuple[tuple[tuple[str, str], ...], Int64Column]:
    """The distinct (function key, category) pairs, and which one each logical row is."""
    names = run.category_names()
    keys = [function.key for function in run.symbolized.functions]
    category = np.where(run.attribution.leaf_category < 0, len(names) - 1, run.attribution.leaf_category)
    pairs, pair = np.unique(run.stacks.function().astype(np.int64) * len(names) + category, return_inverse=True)
    number_of: dict[tuple[str, str], int] = {}
    box_of_pair = [
        number_of.setdefault((keys[value // len(names)], names[value % len(names)]), len(number_of)) for value in pairs.tolist()
    ]
    return tuple(number_of), np.array(box_of_pair, np.int64)[pair]


def _shown(run: AttributedRun, box: Int64Column, box_count: int) -> tuple[_Shown, ...]:
    """Name, file and line of each box's heaviest row, what runs below it included."""
    stacks = run.stacks
    weight = sums_of_subtrees(stacks.levels, stacks.prefix, run.weight)
    order = np.lexsort((-weight, box))
    rows = order[np.searchsorted(box[order], np.arange(box_count))]
    files = (*run.symbolized.files, "")
    shown = []
    for row in rows.tolist():
        place = int(stacks.place[row])
        function = run.symbolized.functions[int(stacks.places.function[place])]
        shown.append((-int(weight[row]), function.name, files[int(stacks.places.file[place])], int(stacks.line[row])))
    return tuple(shown)
