"""Sampled events and the unit of their weight."""

from __future__ import annotations

from dataclasses import dataclass

CLOCK_EVENTS = frozenset({"cpu-clock", "task-clock"})


@dataclass(frozen=True, slots=True)
class Event:
    """``name`` as perf spells it, modifiers included.  ``unit``: "ns" for the clocks, otherwise the event's own ("cycles",
    "page-faults", ...).  ``frequency_hz`` 0 when a fixed period was asked for; ``period`` then holds it."""

    name: str
    unit: str
    frequency_hz: int
    period: int
