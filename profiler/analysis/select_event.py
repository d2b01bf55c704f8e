"""Which of the recorded events an analysis is about; weights of different events are never added."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from profiler.errors import AnalysisError, UsageError
from profiler.model.arrays import BoolColumn
from profiler.model.capture import Capture
from profiler.model.event import Event

AUTO = "auto"
_AUTO_EVENT = "cpu-clock"
# perf adds it to carry its own records; it never counts anything.
_BOOKKEEPING_EVENT = "dummy"


def select_event(captures: Sequence[Capture], wanted: str) -> Event:
    """The event of an arm.  ``wanted``: a name with or without modifiers; "" or "auto" is the only event there is, else
    cpu-clock.

    Raises ``UsageError`` that lists the events when the choice is open or not there, ``AnalysisError`` when the captures
    count in different units.
    """
    chosen = [_choose(capture, wanted) for capture in captures if capture.events]
    if not chosen:
        return Event(wanted if wanted != AUTO else "", "", 0, 0)
    units = sorted({f"{event.name} in {event.unit}" for event in chosen})
    if len({(_base(event.name), event.unit) for event in chosen}) > 1:
        raise AnalysisError(f"the runs of one arm count different events ({', '.join(units)}): choose one with --event")
    return chosen[0]


def samples_of_event(capture: Capture, event: Event) -> BoolColumn:
    """bool[samples]: samples of the event (of every event row with that name)."""
    rows = np.array([*(_base(own.name) == _base(event.name) for own in capture.events), False], np.bool_)
    exact = np.array([*(own.name == event.name for own in capture.events), False], np.bool_)
    return (exact if exact.any() else rows)[capture.samples.event]


def _choose(capture: Capture, wanted: str) -> Event:
    events = [event for event in capture.events if _base(event.name) != _BOOKKEEPING_EVENT] or capture.events
    if wanted in ("", AUTO):
        names = {event.name for event in events}
        candidates = [event for event in events if len(names) == 1 or _base(event.name) == _AUTO_EVENT]
    else:
        candidates = [event for event in events if event.name == wanted]
        candidates = candidates or [event for event in events if _base(event.name) == _base(wanted)]
    if len({event.name for event in candidates}) == 1:
        return candidates[0]
    listed = ", ".join(sorted({event.name for event in events}))
    source = capture.info.source or f"{capture.info.identity.session}/{capture.info.identity.variant}"
    if wanted in ("", AUTO):
        raise UsageError(f"{source} holds several events: {listed}; choose one with --event")
    raise UsageError(f"{source} has no single event '{wanted}'; it holds: {listed}")


def _base(name: str) -> str:
    """The name without modifiers: ``cpu-clock:u`` is ``cpu-clock``; a tracepoint's ``subsystem:name`` stays whole."""
    head, _, modifiers = name.partition(":")
    return head if set(modifiers) <= set("ukhpGHIDPSWeb") else name
