"""Which of the recorded events an analysis is about; weights of different events are never added."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set

import numpy as np

from profiler.errors import AnalysisError, UsageError
from profiler.model.arrays import BoolColumn
from profiler.model.capture import Capture
from profiler.model.event import NON_IDLE_SAMPLES, Event, base_event_name
from profiler.model.quality import ReportWarning

AUTO = "auto"
# In this order: nanoseconds of CPU time, then what comes next to it.
_USUAL_EVENTS = ("cpu-clock", "task-clock", "cycles", "cpu-cycles")
# perf adds it to carry its own records; it never counts anything.
_BOOKKEEPING_EVENT = "dummy"


def select_event(captures: Sequence[Capture], wanted: str) -> Event:
    """The event of an arm.  ``wanted``: a name with or without modifiers; "" or "auto" is a clock, else cycles, else the only
    event that has samples.

    Raises ``UsageError`` that lists the events when the choice is open or not there, ``AnalysisError`` when the captures
    count in different units.
    """
    recorded = [capture for capture in captures if capture.events]
    sampled = {event.name for capture in recorded for event, count in _counted(capture) if count}
    chosen = [_choose(capture, wanted, sampled) for capture in recorded]
    if not chosen:
        return Event(wanted if wanted != AUTO else "", "", 0, 0)
    units = sorted({f"{event.name} in {_measure(event)}" for event in chosen})
    if len({(base_event_name(event.name), _measure(event)) for event in chosen}) > 1:
        raise AnalysisError(f"the runs of one arm count different events ({', '.join(units)}): choose one with --event")
    return chosen[0]


def _measure(event: Event) -> str:
    """The unit; of mere numbers of samples also the rate at which they were taken."""
    return f"{event.unit} at {event.frequency_hz or 'unknown'} Hz" if event.unit == NON_IDLE_SAMPLES else event.unit


def samples_of_event(capture: Capture, event: Event) -> BoolColumn:
    """bool[samples]: samples of the event (of every event row with that name)."""
    is_shown: BoolColumn = np.array([*_is_event(capture, event), False], np.bool_)[capture.samples.event]
    return is_shown


def _is_event(capture: Capture, event: Event) -> list[bool]:
    """Of each event of the capture, whether it is meant: by its whole name, else by the name without modifiers."""
    exact = [own.name == event.name for own in capture.events]
    return exact if any(exact) else [base_event_name(own.name) == base_event_name(event.name) for own in capture.events]


def other_events(arm: str, captures: Sequence[Capture], event: Event, wanted: str) -> tuple[ReportWarning, ...]:
    """A warning that names the events with samples that ``event``, taken without being asked for, stands beside."""
    if wanted not in ("", AUTO):
        return ()
    counts: Counter[str] = Counter()
    for capture in captures:
        shown = {own.name for own, is_shown in zip(capture.events, _is_event(capture, event), strict=True) if is_shown}
        counts.update({own.name: count for own, count in _counted(capture) if own.name not in shown and count})
    if not counts:
        return ()
    listed = ", ".join(f"{name} ({count} sample{'' if count == 1 else 's'})" for name, count in sorted(counts.items()))
    message = f"{arm}: shows {event.name}; also recorded: {listed}"
    return (ReportWarning("other-events", message, "choose one with --event"),)


def _counted(capture: Capture) -> Iterator[tuple[Event, int]]:
    """Every event that counts something, with its number of samples."""
    rows = capture.samples.event
    counts = np.bincount(rows[rows >= 0], minlength=len(capture.events)).tolist()
    real = [
        (event, count)
        for event, count in zip(capture.events, counts, strict=True)
        if base_event_name(event.name) != _BOOKKEEPING_EVENT
    ]
    yield from real or zip(capture.events, counts, strict=True)


def _choose(capture: Capture, wanted: str, sampled: Set[str]) -> Event:
    """``sampled``: names of the events that have samples in any run of the arm."""
    events = [event for event, _ in _counted(capture)]
    candidates = _by_default(events, sampled) if wanted in ("", AUTO) else _named(events, wanted)
    if len({event.name for event in candidates}) == 1:
        return candidates[0]
    listed = ", ".join(sorted({event.name for event in candidates or events}))
    source = capture.info.source or f"{capture.info.identity.session}/{capture.info.identity.variant}"
    if wanted in ("", AUTO):
        raise UsageError(f"{source} holds several events: {listed}; choose one with --event")
    raise UsageError(f"{source} has no single event '{wanted}'; it holds: {', '.join(sorted({e.name for e in events}))}")


def _by_default(events: Sequence[Event], sampled: Set[str]) -> list[Event]:
    """The usual event, be it sampled or not, so that the choice does not depend on chance; else what has samples."""
    for usual in _USUAL_EVENTS:
        found = [event for event in events if base_event_name(event.name) == usual]
        if found:
            return _sampled(found, sampled)
    return _sampled(events, sampled)


def _sampled(events: Sequence[Event], sampled: Set[str]) -> list[Event]:
    """Those with samples; the first one where none has."""
    return [event for event in events if event.name in sampled] or list(events[:1])


def _named(events: Sequence[Event], wanted: str) -> list[Event]:
    exact = [event for event in events if event.name == wanted]
    return exact or [event for event in events if base_event_name(event.name) == base_event_name(wanted)]
