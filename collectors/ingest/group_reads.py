"""PERF_SAMPLE_READ: samples whose weight is what the counters in them gained since they were last read.

A group sample carries the counters of all members, each with its event's id; it stands for one sample of every member that
moved.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collectors.perf_data import spec
from collectors.perf_data.attributes import EventAttributes
from collectors.perf_data.reader import Chunk
from collectors.perf_data.sample_fields import read_entry_words, read_time_words
from profiler.model.arrays import BoolColumn, Int16Column, Int64Column, UInt64Column
from profiler.model.quick_dataclass import dataclass

_NO_THREAD = np.uint64(2**64 - 1)
_MAX_GAIN = np.uint64(2**62)


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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Gains:
    """One row per counter that moved, in the order in which they were read: ``sample`` row in its chunk, ``event`` row of the
    attributes (-1 for a counter that no event has), ``gain`` > 0."""

    sample: Int64Column
    event: Int16Column
    gain: Int64Column

    def of_samples(self, chosen: BoolColumn) -> Gains:
        """Those of the chosen samples, which are counted anew from 0, and of known events."""
        number = np.cumsum(chosen) - 1
        keep = chosen[self.sample] & (self.event >= 0)
        return Gains(number[self.sample[keep]], self.event[keep], self.gain[keep])


class CounterGains:
    """What each counter gained between its readings.  A counter that children inherit is read per thread."""

    def __init__(self, attributes: Sequence[EventAttributes]) -> None:
        owner = {number: row for row, event in enumerate(attributes) for number in event.ids}
        self._ids = np.array(sorted(owner), np.uint64)
        self._rows = np.array([*(owner[number] for number in sorted(owner)), -1], np.int16)
        self._is_inherited = np.array([*(event.is_inherited for event in attributes), False], np.bool_)
        self._latest: dict[tuple[int, int], int] = {}

    def gains(self, readings: CounterReadings, process_thread: UInt64Column) -> Gains:
        """Readings must come in file order.  ``process_thread`` per sample of the chunk."""
        place = np.minimum(np.searchsorted(self._ids, readings.counter), max(len(self._ids) - 1, 0))
        is_known = self._ids[place] == readings.counter if len(self._ids) else np.zeros(len(place), np.bool_)
        event = np.where(is_known, self._rows[place], np.int16(-1)).astype(np.int16)
        thread = np.where(self._is_inherited[event], process_thread[readings.sample], _NO_THREAD)
        before = self._readings_before(np.column_stack([readings.counter, thread]), readings.value)
        moved = readings.value > before
        gain = np.minimum(readings.value[moved] - before[moved], _MAX_GAIN).astype(np.int64)
        return Gains(readings.sample[moved], event[moved], gain)

    def _readings_before(self, keys: UInt64Column, value: UInt64Column) -> UInt64Column:
        """The reading before each one of the same key (uint64[n, 2]); those of earlier chunks are kept."""
        distinct_keys, number = np.unique(keys, axis=0, return_inverse=True)
        number = number.reshape(-1)
        order = np.argsort(number, kind="stable")
        is_first = np.append(True, number[order][1:] != number[order][:-1])[: len(order)]
        before = np.zeros(len(value), np.uint64)
        before[order[1:]] = value[order[:-1]]
        names: list[tuple[int, int]] = [(counter, thread) for counter, thread in distinct_keys.tolist()]
        before[order[is_first]] = np.array([self._latest.get(name, 0) for name in names], np.uint64)
        last = order[np.append(np.flatnonzero(is_first)[1:], len(order)) - 1] if len(order) else order
        self._latest.update(zip(names, value[last].tolist(), strict=True))
        return before
