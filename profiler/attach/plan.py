"""What `slotscope attach` is asked for."""

from __future__ import annotations

import math
import re
import sys
from dataclasses import field

from collectors.prometheus import PageMetric
from collectors.targets.target_finder import TargetFinder
from profiler.errors import UsageError
from profiler.experiment.plan.call_graph_request import CallGraphRequest
from profiler.experiment.plan.recording_plan import DEFAULT_EVENT
from profiler.model.event import HIGHEST_PYTHON_FREQUENCY_HZ
from profiler.model.quick_dataclass import dataclass
from profiler.model.sampling_defaults import ATTACHED_FREQUENCY_HZ, SHORTEST_WINDOW_S, WINDOW_S
from profiler.store.records import check_variant_name

_WHOLE = 1e-6


@dataclass(frozen=True, slots=True)
class AttachPlan:
    """``variant``: "" = the name of the process.  ``duration_s``: 0 = until the target ends or somebody asks for the end.
    ``window_s``: how long a window lasts.  ``metrics_address``: page that ``pages`` are read from at the edges of windows.
    ``begin_at_ns``: the moment (CLOCK_MONOTONIC) at which the first window begins, 0 = at once.  ``instance``: what the process
    is called in the captures, "" = its name and ID; with one the session ends with the process, and waits for no other.
    ``settle_s``: for how long a process must have been running when its first window begins; 0 = for however short.
    ``most_kept_bytes``: how much of the target's binaries and debug files may be kept, where these are its own.
    ``command``: the words that asked for it, for the session."""

    finder: TargetFinder
    variant: str = ""
    duration_s: float = 0.0
    window_s: float = WINDOW_S
    event: str = DEFAULT_EVENT
    frequency_hz: int = ATTACHED_FREQUENCY_HZ
    call_graph: CallGraphRequest = field(default_factory=CallGraphRequest)
    phase: str = ""
    metrics_address: str = ""
    pages: tuple[PageMetric, ...] = ()
    begin_at_ns: int = 0
    instance: str = ""
    settle_s: float = 0.0
    most_kept_bytes: int = sys.maxsize
    command: tuple[str, ...] = ("attach",)


def duration_length_s(duration_s: float | None) -> float:
    """0 when none is asked for.  ``UsageError`` for what is no length of time."""
    if duration_s is None:
        return 0.0
    if not 0 < duration_s < math.inf:
        raise UsageError(f"--duration {duration_s:g}: expected a number of seconds above 0")
    return duration_s


def window_length_s(duration_s: float, window_s: float | None) -> float:
    """``window_s``, or when none is asked for one that fits.  ``duration_s``: of ``duration_length_s``.

    ``UsageError`` for windows that do not divide the duration: the last one would be shorter, and could not be compared with
    the others."""
    if window_s is None:
        return duration_s / math.ceil(duration_s / WINDOW_S) if duration_s else WINDOW_S
    if not SHORTEST_WINDOW_S <= window_s < math.inf:
        raise UsageError(f"--window {window_s:g}: expected at least {SHORTEST_WINDOW_S:g} second")
    windows = duration_s / window_s
    if windows and (round(windows) < 1 or abs(windows - round(windows)) > _WHOLE * windows):
        raise UsageError(
            f"--duration {duration_s:g} is no multiple of --window {window_s:g}: the last window would be shorter; "
            f"ask for {max(1, round(windows)) * window_s:g}"
        )
    return window_s


def check_attach_plan(plan: AttachPlan) -> None:
    """``UsageError`` for what cannot work."""
    if not 1 <= plan.frequency_hz <= 100_000:
        raise UsageError(f"--frequency {plan.frequency_hz}: expected 1 to 100000 samples per second")
    if plan.variant:
        check_variant_name(plan.variant)
    if plan.pages and not plan.metrics_address:
        raise UsageError("--metric needs --metrics, the address of the page that it is on")
    if plan.metrics_address and not plan.pages:
        raise UsageError("--metrics needs --metric NAME=SERIES: what is to be read on the page")


def check_python_plan(plan: AttachPlan) -> None:
    """``UsageError`` for what cannot work with py-spy."""
    check_attach_plan(plan)
    if plan.begin_at_ns:
        raise UsageError("a moment to begin goes with perf only: py-spy begins as soon as it has found the interpreter")
    if plan.frequency_hz > HIGHEST_PYTHON_FREQUENCY_HZ:
        raise UsageError(
            f"--frequency {plan.frequency_hz}: py-spy stops the process for every sample, so that "
            f"{HIGHEST_PYTHON_FREQUENCY_HZ} per second are the most"
        )


def variant_of(name: str) -> str:
    """A variant's name made of a process's."""
    found = re.sub(r"[^A-Za-z0-9_.+@,-]", "_", name).lstrip(".+@,-")
    return found if found and found != "last" else f"{found or 'process'}_"
