"""PERF_SAMPLE_READ: samples whose weight is what the counters in them gained since they were last read.

A group sample carries the counters of all members, each with its event's id; it stands for one sample of every member that
moved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from collectors.perf_data import spec
from collectors.perf_data.attributes import EventAttributes
from collectors.perf_data.reader import Chunk
from collectors.perf_data.sample_fields import read_entry_words, read_time_words
from profiler.model.arrays import Int16Column, Int32Column, Int64Column, UInt64Column


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CounterReadings:
    """One row per counter read: ``sample`` row in its chunk, ``counter`` id, ``value`` as read."""

    sample: Int64Column
    counter: UInt64Column
    value: UInt64Column


def counter_readings(chunk: Chunk) -> CounterReadings | None:
    """The counters of a chunk's samples; ``None`` when they carry none that can be told apart."""
    layout, fields = chunk.layout, chunk.fields
    if not layout.has(spec.PERF_SAMPLE_READ) or not layout.read_format & spec.PERF_FORMAT_ID:
        return None
    entry_words, time_words = read_entry_words(layout.read_format), read_time_words(layout.read_format)
    if layout.read_format & spec.PERF_FORMAT_GROUP:
        members = np.maximum(fields.read_end - fields.read_start - 1 - time_words, 0) // entry_words
        first = fields.read_start + 1 + time_words
        step = entry_words
        id_at = 1
    else:
        members = np.ones(len(chunk.position), np.int64)
        first, step = fields.read_start, 0
        id_at = 1 + time_words
    members = np.where(fields.is_damaged, 0, members)
    sample = np.repeat(np.arange(len(members)), members)
    rank = np.arange(len(sample)) - np.repeat(np.cumsum(members) - members, members)
    at = first[sample] + rank * step
    return CounterReadings(sample, fields.words[at + id_at], fields.words[at])


class CounterGains:
    """What each counter gained between its readings.  A counter that children inherit is read per thread."""

    def __init__(self, attributes: Sequence[EventAttributes]) -> None:
        self._event_of: Mapping[int, int] = {number: row for row, event in enumerate(attributes) for number in event.ids}
        self._is_inherited = [event.is_inherited for event in attributes]
        self._latest: dict[tuple[int, int], int] = {}

    def gains(self, readings: CounterReadings, thread: Int32Column) -> tuple[Int64Column, Int16Column, Int64Column]:
        """(sample row, event row, gain) of every counter that moved; readings must come in file order.  ``thread`` per
        sample."""
        rows, events, gains = [], [], []
        latest = self._latest
        columns = (readings.sample.tolist(), readings.counter.tolist(), readings.value.tolist())
        threads = thread.tolist()
        for row, counter, value in zip(*columns, strict=True):
            event = self._event_of.get(counter, -1)
            key = (counter, threads[row] if event >= 0 and self._is_inherited[event] else -1)
            gain = value - latest.get(key, 0)
            latest[key] = value
            if gain > 0:
                rows.append(row)
                events.append(event)
                gains.append(min(gain, 2**62))
        return np.array(rows, np.int64), np.array(events, np.int16), np.array(gains, np.int64)
