"""What a recording is to do, as given by the user and checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from enum import StrEnum
from pathlib import Path

from collectors.metrics import MetricSpec
from profiler.errors import UsageError
from profiler.experiment.plan.call_graph_request import CallGraphRequest
from profiler.model.quick_dataclass import dataclass
from profiler.model.sampling_defaults import FREQUENCY_HZ
from profiler.store.records import check_variant_name

BINARY_PLACEHOLDER = "{binary}"
DEFAULT_RUNS = 10
DEFAULT_EVENT = "cpu-clock"


class ProfilePolicy(StrEnum):
    """SEPARATE: every arm of every round runs once plain, for times, and once under perf, for attribution.  SAME: only under
    perf, times and all.  NONE: only plain."""

    SEPARATE = "separate"
    SAME = "same"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Arm:
    """A variant, under a condition or none.  ``command``: argument list of its runs.  ``binary``: the file whose code is
    measured, "" = the command's first word.  ``profiled_command``, ``profiled_binary``: the same for runs under perf where
    those are of another build, empty = of the same.  ``environment``: added to that of slotscope."""

    variant: str
    command: tuple[str, ...]
    binary: str = ""
    condition: str = ""
    environment: tuple[tuple[str, str], ...] = ()
    profiled_command: tuple[str, ...] = ()
    profiled_binary: str = ""

    @property
    def label(self) -> str:
        return f"{self.variant}@{self.condition}" if self.condition else self.variant


@dataclass(frozen=True, slots=True)
class RecordPlan:
    """A session.  ``command``: as given by the user, for the catalog.  ``before``: argument list run before every run, empty =
    none.  ``cpus``: where the program may run, empty = everywhere.  ``phase``: checked on the first profiled run, and the
    default of later reports.  ``seed``: of the order of the runs.  ``timeout_s``: of a run, 0 = none.  ``retries``: runs that
    may be made again in all because they failed or were disturbed; 0 also lets the first failure end the session."""

    command: tuple[str, ...]
    arms: tuple[Arm, ...]
    seed: int
    runs: int = DEFAULT_RUNS
    warmup: int = 0
    profile: ProfilePolicy = ProfilePolicy.SEPARATE
    event: str = DEFAULT_EVENT
    frequency_hz: int = FREQUENCY_HZ
    call_graph: CallGraphRequest = field(default_factory=CallGraphRequest)
    metrics: tuple[MetricSpec, ...] = ()
    before: tuple[str, ...] = ()
    drop_caches: bool = False
    inputs: tuple[Path, ...] = ()
    cpus: frozenset[int] = frozenset()
    phase: str = ""
    keep_raw: bool = False
    timeout_s: float = 0.0
    retries: int = 0


def variant_arms(command: tuple[str, ...], variants: Sequence[tuple[str, str]]) -> tuple[Arm, ...]:
    """An arm per (name, binary); ``{binary}`` in the command is replaced, and "" is for a command that is the same in every
    arm.  ``UsageError`` when binaries and command do not fit together."""
    has_placeholder = any(BINARY_PLACEHOLDER in argument for argument in command)
    for name, binary in variants:
        if binary and not has_placeholder:
            raise UsageError(f"variant {name!r} has a binary, but there is no {BINARY_PLACEHOLDER} in the command")
        if has_placeholder and not binary:
            raise UsageError(f"{BINARY_PLACEHOLDER} in the command: write --variant {name}=BINARY")
    return tuple(
        Arm(name, tuple(argument.replace(BINARY_PLACEHOLDER, binary) for argument in command), binary)
        for name, binary in variants
    )


def check_plan(plan: RecordPlan) -> None:
    """``UsageError`` for a plan that cannot be carried out as meant."""
    if not plan.command:
        raise UsageError("no command to record: `slotscope record [OPTIONS] -- CMD ARGUMENTS...`")
    if plan.runs < 1 or plan.warmup < 0:
        raise UsageError(f"{plan.runs} runs and {plan.warmup} warm-up runs: at least 1 and 0 are needed")
    if plan.frequency_hz < 1:
        raise UsageError(f"--frequency {plan.frequency_hz}: expected a positive number of samples per second")
    labels = [arm.label for arm in plan.arms]
    if len(set(labels)) != len(labels) or not labels:
        raise UsageError(f"variants need distinct names: {', '.join(labels)}")
    for arm in plan.arms:
        check_variant_name(arm.variant)
    metric_names = [metric.name for metric in plan.metrics]
    if len(set(metric_names)) != len(metric_names):
        raise UsageError(f"metrics need distinct names: {', '.join(metric_names)}")
