"""The order of the runs of a session; pure.

Arms are shuffled anew in every round, so that neither drift of the machine nor the neighbour in the order favours one of
them.  The plain runs of a round stand together, the profiled ones behind: what is compared lies close in time.
"""

from __future__ import annotations

import random

from profiler.experiment.plan.recording_plan import ProfilePolicy
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import RunMode

# The modes in which every arm runs in a round, one after the other.
PASSES = {
    ProfilePolicy.SEPARATE: (RunMode.PLAIN, RunMode.PROFILED),
    ProfilePolicy.SAME: (RunMode.PROFILED,),
    ProfilePolicy.NONE: (RunMode.PLAIN,),
}


@dataclass(frozen=True, slots=True)
class ScheduledRun:
    """``arm``: index of the plan's variant.  ``round`` and ``position`` (over the session) count from 0; both are -1 for a
    warm-up run, which is not kept."""

    arm: int
    mode: RunMode
    round: int
    position: int

    @property
    def is_warmup(self) -> bool:
        return self.round < 0


@dataclass(frozen=True, slots=True)
class Schedule:
    """Warm-up runs first, then the rounds, each in order of execution."""

    warmups: tuple[ScheduledRun, ...]
    rounds: tuple[tuple[ScheduledRun, ...], ...]

    def __len__(self) -> int:
        return len(self.warmups) + sum(len(runs) for runs in self.rounds)


def make_schedule(arms: int, rounds: int, warmups: int, profile: ProfilePolicy, seed: int) -> Schedule:
    """The schedule; equal arguments give equal schedules on every machine."""
    generator = random.Random(seed)
    passes = PASSES[profile]
    planned = []
    for round_number in range(rounds):
        order = [(arm, mode) for mode in passes for arm in generator.sample(range(arms), arms)]
        first = round_number * len(order)
        planned.append(tuple(ScheduledRun(arm, mode, round_number, first + i) for i, (arm, mode) in enumerate(order)))
    warm = tuple(ScheduledRun(arm, RunMode.PLAIN, -1, -1) for _ in range(warmups) for arm in range(arms))
    return Schedule(warm, tuple(planned))
