"""What a recording is to do, as given by the user and checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from collectors.metrics import MetricSpec
from profiler.errors import UsageError
from profiler.experiment.call_graph import CallGraphRequest
from profiler.store.records import check_variant_name

BINARY_PLACEHOLDER = "{binary}"
DEFAULT_RUNS = 10
DEFAULT_FREQUENCY_HZ = 1999
DEFAULT_EVENT = "cpu-clock"


class ProfilePolicy(StrEnum):
    """SEPARATE: every arm of every round runs once plain, for times, and once under perf, for attribution.  SAME: only under
    perf, times and all.  NONE: only plain."""

    SEPARATE = "separate"
    SAME = "same"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Variant:
    """One arm.  ``binary`` replaces ``{binary}`` in the command; "" when the command is the same for every arm."""

    name: str
    binary: str = ""


@dataclass(frozen=True, slots=True)
class RecordPlan:
    """A session.  ``command``: argument list, ``{binary}`` in it is replaced per variant.  ``before``: argument list run before
    every run, empty = none.  ``cpus``: where the program may run, empty = everywhere.  ``phase``: checked on the first profiled
    run, and the default of later reports.  ``seed``: of the order of the runs."""

    command: tuple[str, ...]
    variants: tuple[Variant, ...]
    seed: int
    runs: int = DEFAULT_RUNS
    warmup: int = 0
    profile: ProfilePolicy = ProfilePolicy.SEPARATE
    event: str = DEFAULT_EVENT
    frequency_hz: int = DEFAULT_FREQUENCY_HZ
    call_graph: CallGraphRequest = field(default_factory=CallGraphRequest)
    metrics: tuple[MetricSpec, ...] = ()
    before: tuple[str, ...] = ()
    drop_caches: bool = False
    inputs: tuple[Path, ...] = ()
    cpus: frozenset[int] = frozenset()
    phase: str = ""
    keep_raw: bool = False


def check_plan(plan: RecordPlan) -> None:
    """``UsageError`` for a plan that cannot be carried out as meant."""
    if not plan.command:
        raise UsageError("no command to record: `slotscope record [OPTIONS] -- CMD ARGUMENTS...`")
    if plan.runs < 1 or plan.warmup < 0:
        raise UsageError(f"{plan.runs} runs and {plan.warmup} warm-up runs: at least 1 and 0 are needed")
    if plan.frequency_hz < 1:
        raise UsageError(f"--frequency {plan.frequency_hz}: expected a positive number of samples per second")
    names = [variant.name for variant in plan.variants]
    if len(set(names)) != len(names) or not names:
        raise UsageError(f"variants need distinct names: {', '.join(names)}")
    for name in names:
        check_variant_name(name)
    metric_names = [metric.name for metric in plan.metrics]
    if len(set(metric_names)) != len(metric_names):
        raise UsageError(f"metrics need distinct names: {', '.join(metric_names)}")
    _check_binaries(plan)


def _check_binaries(plan: RecordPlan) -> None:
    has_placeholder = any(BINARY_PLACEHOLDER in argument for argument in plan.command)
    for variant in plan.variants:
        if variant.binary and not has_placeholder:
            raise UsageError(f"variant {variant.name!r} has a binary, but there is no {BINARY_PLACEHOLDER} in the command")
        if has_placeholder and not variant.binary:
            raise UsageError(f"{BINARY_PLACEHOLDER} in the command: write --variant {variant.name}=BINARY")


def command_of(plan: RecordPlan, variant: Variant) -> tuple[str, ...]:
    """The variant's argument list."""
    return tuple(argument.replace(BINARY_PLACEHOLDER, variant.binary) for argument in plan.command)
