"""Whether the samples of clock events account for the CPU time that the kernel charged the program with.

A clock that belongs to a task starts anew in every thread and every child, so threads that end within one sampling period
are never seen; throttled and lost samples, and clocks faster than the machine can serve, leave time out as well.  None of
that shows in the samples that are there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from profiler.analysis.attribution.select_event import samples_of_event
from profiler.analysis.quality.findings import WARN, Finding
from profiler.model.capture import Capture
from profiler.model.event import Event, split_event_name
from profiler.model.run import RunMode

LEAST_COVERED = 0.9
# The count of samples of a run scatters about its expectation; fewer missing than this many standard deviations are chance.
_DEVIATIONS = 5.0
_CLOCKS = ("cpu-clock", "task-clock")


def coverage_findings(arm: str, captures: Sequence[Capture], event: Event) -> tuple[Finding, ...]:
    """A finding when the profiled runs' samples of ``event``, phase and filters aside, hold clearly less than their CPU time.

    Only for recordings of whole programs whose resource usage is known, and for clocks.  A clock of user space alone is held
    against the time in user space.
    """
    name, modifiers = split_event_name(event.name)
    if name not in _CLOCKS or event.unit != "ns" or "k" in modifiers:
        return ()
    used_ns = sampled_ns = samples = 0
    for capture in captures:
        outcome = capture.info.outcome
        if capture.info.identity.mode is RunMode.PROFILED:
            used_ns += outcome.user_ns + (0 if "u" in modifiers else outcome.system_ns)
            admitted = samples_of_event(capture, event)
            sampled_ns += int(capture.samples.weight[admitted].sum())
            samples += int(admitted.sum())
    if not samples or sampled_ns >= LEAST_COVERED * used_ns:
        return ()
    expected = used_ns / (sampled_ns / samples)
    if expected - samples < _DEVIATIONS * math.sqrt(expected):
        return ()
    message = f"{arm}: the samples hold {100 * sampled_ns / used_ns:.0f} % of the CPU time that the program used"
    advice = (
        "threads and children shorter than a sampling period are not seen: raise --frequency; lower it when samples are lost"
    )
    return (Finding(WARN, "cpu-time-unseen", message, advice),)
