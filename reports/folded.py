"""Folded stacks: one line per distinct stack, ``process;outermost;...;innermost WEIGHT``.

Readers split frames at ";" and take the weight after the last blank, so ";" in a name is written as ":" and line breaks and
other control characters as escapes; blanks inside names are kept, as every reader does.
"""

from __future__ import annotations

from profiler.model.call_stacks import CallStacks, ProcessWeights
from reports.plain_text import printable
from reports.stack_walk import walk


def render_folded(stacks: CallStacks) -> str:
    """Lines sorted by text; weights are whole numbers in the event's unit, summed over the runs, so that they add up to the
    arm's total.  Stacks that read the same become one line."""
    names = [_folded_name(frame.name) for frame in stacks.frames]
    processes = [_folded_name(name or stacks.arm) for name in stacks.processes.names]
    of_stack = _by_stack(stacks.processes)
    weights: dict[str, int] = {}
    for row, frames_root_first in walk(stacks):
        path = ";".join(names[frame] for frame in frames_root_first)
        for process, weight in of_stack[row]:
            line = f"{processes[process]};{path}"
            weights[line] = weights.get(line, 0) + weight
    return "".join(f"{line} {weight}\n" for line, weight in sorted(weights.items()))


def _by_stack(processes: ProcessWeights) -> dict[int, list[tuple[int, int]]]:
    """(process, weight) pairs of every stack with weight."""
    found: dict[int, list[tuple[int, int]]] = {}
    for stack, process, weight in zip(
        processes.stack.tolist(), processes.process.tolist(), processes.weight.tolist(), strict=True
    ):
        found.setdefault(stack, []).append((process, weight))
    return found


def _folded_name(name: str) -> str:
    return printable(name).replace(";", ":").strip() or "[unknown]"
