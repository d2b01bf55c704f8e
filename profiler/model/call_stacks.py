"""Call stacks of one arm by function, merged over its runs: what flame graphs and folded text are made of."""

from __future__ import annotations

from profiler.model.arrays import Int32Column, Int64Column
from profiler.model.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class CallFrame:
    """One box of a flame graph: a function as shown, with the category that took its own time.  ``file`` "" and ``line`` 0
    when unknown."""

    name: str
    file: str
    line: int
    category: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ProcessWeights:
    """Whose the self weights are, summed over the runs: one row per (stack, process) with weight, by stack, then process.

    ``stack``: row of the stacks.  ``process``: row of ``names``, the comms.  ``weight``: sums per stack to its own exactly.
    """

    names: tuple[str, ...]
    stack: Int32Column
    process: Int32Column
    weight: Int64Column


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CallStacks:
    """A prefix tree over ``frames`` (see ``stack_table``: ``prefix[i] < i``, -1 = outermost) with self weights.

    ``frame``: row of ``frames``.  ``weight``: int64[stacks, runs], self weight of exactly this stack in each run, in
    ``unit``; sums to the arm's total exactly.  ``category``: row of ``categories``, the leaf category of that stack.
    """

    arm: str
    event: str
    unit: str
    processes: ProcessWeights
    frames: tuple[CallFrame, ...]
    prefix: Int32Column
    frame: Int32Column
    category: Int32Column
    categories: tuple[str, ...]
    weight: Int64Column
