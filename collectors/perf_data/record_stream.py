"""What every container of a recording comes down to: plain records in one place, events, and facts of the recording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from collectors.perf_data.attributes import EventAttributes
from collectors.perf_data.byte_source import ByteSource, Section
from collectors.perf_data.features import EventDescription, Features
from profiler.model.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class RecordStream:
    """The records in ``extent`` of ``source``, none of them compressed.  ``attributes``: one per event, at least one.

    ``is_unfinished``: the recorder or a copy ended in the middle, so ``extent`` may end inside a record.
    """

    source: ByteSource
    extent: Section
    is_unfinished: bool
    attributes: tuple[EventAttributes, ...]
    features: Features


def named_events(attributes: Sequence[EventAttributes], described: Sequence[EventDescription]) -> tuple[EventAttributes, ...]:
    """Names from the event descriptions: by ids, else by order when there are as many descriptions as events."""
    by_ids = {event.ids: event.name for event in described if event.ids}
    by_order = [event.name for event in described] if len(described) == len(attributes) else []
    named = []
    for row, event in enumerate(attributes):
        name = by_ids.get(event.ids) or (by_order[row] if by_order else "") or event.name
        named.append(replace(event, name=name))
    return tuple(named)
