"""Sampled events and the unit of their weight."""

from __future__ import annotations

from profiler.model.quick_dataclass import dataclass

CLOCK_EVENTS = frozenset({"cpu-clock", "task-clock"})
NON_IDLE_SAMPLES = "samples of non-idle wall time"
"""The unit of py-spy's samples.  They are counts: those of different rates have no common measure."""
_MODIFIER_LETTERS = frozenset("ukhGHpPDSIWeb")


@dataclass(frozen=True, slots=True)
class Event:
    """``name`` as perf spells it, modifiers included.  ``unit``: "ns" for the clocks, otherwise the event's own ("cycles",
    "page-faults", ...).  ``frequency_hz`` 0 when a fixed period was asked for; ``period`` then holds it."""

    name: str
    unit: str
    frequency_hz: int
    period: int


def split_event_name(name: str) -> tuple[str, str]:
    """(name without modifiers, modifiers): "cycles", "ppp" of "cycles:ppp".

    A tracepoint keeps its colon.  Terms between slashes belong to the name, but for the clocks, where they only say how often
    to sample: "cpu-clock", "u" of "cpu-clock/freq=1999/u".
    """
    stem, separator, modifiers = name.rpartition("/" if name.rfind("/") > name.rfind(":") else ":")
    if not stem or not set(modifiers) <= _MODIFIER_LETTERS:
        stem, separator, modifiers = name, "", ""
    head = stem.partition("/")[0]
    if head in CLOCK_EVENTS:
        return head, modifiers
    return stem + ("/" if separator == "/" else ""), modifiers


def base_event_name(name: str) -> str:
    """The name without modifiers."""
    return split_event_name(name)[0]
