"""Moments and lengths of time in words."""

from __future__ import annotations

from datetime import UTC, datetime

_SECOND_NS = 1_000_000_000
_STEPS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def moment(time_ns: int) -> str:
    """ "2026-03-01 10:00:00 UTC"; "" for 0."""
    return datetime.fromtimestamp(time_ns // _SECOND_NS, UTC).strftime("%Y-%m-%d %H:%M:%S UTC") if time_ns > 0 else ""


def ago(time_ns: int, now_ns: int) -> str:
    """ "12 s ago", in the largest unit that fits; "never" for 0."""
    if time_ns <= 0:
        return "never"
    return f"{span(max(0, now_ns - time_ns))} ago"


def span(length_ns: int) -> str:
    """ "3 min": whole units, rounded down."""
    seconds = length_ns // _SECOND_NS
    for size, unit in _STEPS:
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return "0 s"
