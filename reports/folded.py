"""Folded stacks: one line per distinct stack, ``process;outermost;...;innermost WEIGHT``.

Readers split frames at ";" and take the weight after the last blank, so ";" in a name is written as ":" and line breaks and
other control characters as escapes; blanks inside names are kept, as every reader does.
"""

from __future__ import annotations

from profiler.model.call_stacks import CallStacks
from reports.plain_text import printable
from reports.stack_walk import run_sums, walk


def render_folded(stacks: CallStacks) -> str:
    """Lines sorted by text; weights are whole numbers in the event's unit, summed over the runs, so that they add up to the
    arm's total.  Stacks that read the same become one line."""
    names = [_folded_name(frame.name) for frame in stacks.frames]
    process = _folded_name(stacks.process_name or stacks.arm)
    sums = run_sums(stacks).tolist()
    weights: dict[str, int] = {}
    for row, frames_root_first in walk(stacks):
        line = ";".join((process, *(names[frame] for frame in frames_root_first)))
        weights[line] = weights.get(line, 0) + sums[row]
    return "".join(f"{line} {weight}\n" for line, weight in sorted(weights.items()))


def _folded_name(name: str) -> str:
    return printable(name).replace(";", ":").strip() or "[unknown]"
