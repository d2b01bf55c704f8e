"""Decoding of samples: the fields of many samples of one layout at once, by numpy gathers.

Source: the comment above ``PERF_RECORD_SAMPLE`` in ``include/uapi/linux/perf_event.h`` (order and size of the fields).
"""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from collectors.perf_data import spec
from collectors.perf_data.sample_layout import SampleLayout
from profiler.model.arrays import BoolColumn, Int64Column, UInt64Column
from profiler.model.quick_dataclass import dataclass

# struct perf_branch_entry: from, to, flags.
BRANCH_ENTRY_WORDS = 3


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SampleFields:
    """n samples.  Word positions index ``words``.

    ``misc``: of the record header.  ``process_thread``: pid in the low, tid in the high half.  ``cpu``: -1 unknown.
    ``read_start``, ``read_end``: the body of PERF_SAMPLE_READ, -1 without.  ``chain_start``, ``chain_length``: callchain as
    recorded, markers included.  ``branch_start``, ``branch_count``: branch entries of BRANCH_ENTRY_WORDS words each, the
    latest first.  ``registers_start``: first user register, -1 without.  ``dump_start``: first word of the stack dump,
    ``dump_bytes``: valid bytes of it, 0 without.  ``is_damaged``: a field would lie beyond the record; then everything of
    variable size is empty.  ``mismatched``: how many records are longer or shorter than their fields.
    """

    words: UInt64Column
    misc: UInt64Column
    ip: UInt64Column
    process_thread: UInt64Column
    time_ns: UInt64Column
    event_id: UInt64Column
    cpu: Int64Column
    period: UInt64Column
    read_start: Int64Column
    read_end: Int64Column
    chain_start: Int64Column
    chain_length: Int64Column
    branch_start: Int64Column
    branch_count: Int64Column
    registers_start: Int64Column
    dump_start: Int64Column
    dump_bytes: Int64Column
    is_damaged: BoolColumn
    mismatched: int

    def rows(self, chosen: BoolColumn) -> SampleFields:
        """The samples where ``chosen`` is set."""
        columns = {column.name: getattr(self, column.name) for column in fields(self)}
        kept = {"words": columns.pop("words"), "mismatched": columns.pop("mismatched")}
        return SampleFields(**kept, **{name: column[chosen] for name, column in columns.items()})


class FieldCursor:
    """One position per sample, moved over the fields; what reaches beyond its record is marked damaged and stays put."""

    def __init__(self, words: UInt64Column, position: Int64Column, end: Int64Column) -> None:
        self.words = words
        self.position = position
        self.end = end
        self.is_damaged = position > end
        np.minimum(position, end, out=self.position)

    def word(self) -> UInt64Column:
        """The next word of every sample; 0 where the record is over."""
        inside = self.position < self.end
        if inside.all():
            value = self.words[self.position]
            self.position = self.position + 1
            return value
        value = np.where(inside, self.words[np.where(inside, self.position, 0)], np.uint64(0))
        self.is_damaged |= ~inside
        self.position = self.position + inside
        return value

    def skip(self, count: Int64Column | int) -> None:
        """Passes ``count`` words; negative and too large counts are damage."""
        room = self.end - self.position
        fits = (room >= count) & (np.asarray(count) >= 0)
        self.is_damaged |= ~fits
        self.position = self.position + np.where(fits, count, room)

    def count(self) -> Int64Column:
        """A word that counts words or larger things; what cannot fit is made too large for any record, not negative."""
        return np.minimum(self.word(), np.uint64(1 << 20)).astype(np.int64)


def decode_samples(words: UInt64Column, start: Int64Column, layout: SampleLayout) -> SampleFields:
    """Fields of the samples whose headers are at the word positions ``start``."""
    header = words[start]
    end = start + (header >> np.uint64(51)).astype(np.int64)
    is_short = start + layout.fixed_words > end

    def field(bit: int) -> UInt64Column:
        at = layout.word_of(bit)
        if at < 0:
            return np.zeros(len(start), np.uint64)
        if not is_short.any():
            return words[start + at]
        inside = start + at < end
        return np.where(inside, words[np.where(inside, start + at, 0)], np.uint64(0))

    cursor = FieldCursor(words, start + layout.fixed_words, end)
    variable = _variable_fields(cursor, layout)
    id_field = spec.PERF_SAMPLE_IDENTIFIER if layout.has(spec.PERF_SAMPLE_IDENTIFIER) else spec.PERF_SAMPLE_ID
    cpu = (field(spec.PERF_SAMPLE_CPU) & np.uint64(0xFFFFFFFF)).astype(np.int64)
    is_unknown_tail = bool(layout.sample_type & ~spec.KNOWN_SAMPLE_BITS)
    wrong = cursor.is_damaged if is_unknown_tail else cursor.is_damaged | (cursor.position != end)
    return SampleFields(
        words=words,
        misc=(header >> np.uint64(32)) & np.uint64(0xFFFF),
        ip=field(spec.PERF_SAMPLE_IP),
        process_thread=field(spec.PERF_SAMPLE_TID),
        time_ns=field(spec.PERF_SAMPLE_TIME),
        event_id=field(id_field),
        cpu=cpu if layout.has(spec.PERF_SAMPLE_CPU) else np.full(len(start), -1, np.int64),
        period=field(spec.PERF_SAMPLE_PERIOD),
        read_start=variable.read_start,
        read_end=variable.read_end,
        chain_start=variable.chain_start,
        chain_length=np.where(cursor.is_damaged, 0, variable.chain_length),
        branch_start=variable.branch_start,
        branch_count=np.where(cursor.is_damaged, 0, variable.branch_count),
        registers_start=np.where(cursor.is_damaged, -1, variable.registers_start),
        dump_start=variable.dump_start,
        dump_bytes=np.where(cursor.is_damaged, 0, variable.dump_bytes),
        is_damaged=cursor.is_damaged,
        mismatched=int(wrong.sum()),
    )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _VariableFields:
    read_start: Int64Column
    read_end: Int64Column
    chain_start: Int64Column
    chain_length: Int64Column
    branch_start: Int64Column
    branch_count: Int64Column
    registers_start: Int64Column
    dump_start: Int64Column
    dump_bytes: Int64Column


def _variable_fields(cursor: FieldCursor, layout: SampleLayout) -> _VariableFields:
    nothing = np.zeros(len(cursor.position), np.int64)
    absent = np.full(len(cursor.position), -1, np.int64)
    read_start = read_end = registers_start = absent
    chain_start = chain_length = branch_start = branch_count = dump_start = dump_bytes = nothing
    if layout.has(spec.PERF_SAMPLE_READ):
        read_start = cursor.position
        _skip_read(cursor, layout.read_format)
        read_end = cursor.position
    if layout.has(spec.PERF_SAMPLE_CALLCHAIN):
        chain_length = cursor.count()
        chain_start = cursor.position
        cursor.skip(chain_length)
    if layout.has(spec.PERF_SAMPLE_RAW):
        _skip_raw(cursor)
    if layout.has(spec.PERF_SAMPLE_BRANCH_STACK):
        branch_start, branch_count = _branch_stack(cursor, layout.branch_sample_type)
    if layout.has(spec.PERF_SAMPLE_REGS_USER):
        registers_start = _registers(cursor, layout.user_registers)
    if layout.has(spec.PERF_SAMPLE_STACK_USER):
        dump_start, dump_bytes = _stack_dump(cursor)
    _skip_tail(cursor, layout)
    return _VariableFields(
        read_start, read_end, chain_start, chain_length, branch_start, branch_count, registers_start, dump_start, dump_bytes
    )


def read_entry_words(read_format: int) -> int:
    """Words per value of a PERF_SAMPLE_READ group: the value, its id, its lost count."""
    return 1 + bool(read_format & spec.PERF_FORMAT_ID) + bool(read_format & spec.PERF_FORMAT_LOST)


def read_time_words(read_format: int) -> int:
    return bool(read_format & spec.PERF_FORMAT_TOTAL_TIME_ENABLED) + bool(read_format & spec.PERF_FORMAT_TOTAL_TIME_RUNNING)


def _skip_read(cursor: FieldCursor, read_format: int) -> None:
    if read_format & spec.PERF_FORMAT_GROUP:
        members = cursor.count()
        cursor.skip(read_time_words(read_format) + members * read_entry_words(read_format))
    else:
        cursor.skip(read_time_words(read_format) + read_entry_words(read_format))


def _skip_raw(cursor: FieldCursor) -> None:
    size_bytes = (cursor.word() & np.uint64(0xFFFFFFFF)).astype(np.int64)
    # The u32 size and the data together are padded to whole words; the first word is passed already.
    cursor.skip((size_bytes + 4 + 7) // 8 - 1)


def _branch_stack(cursor: FieldCursor, branch_sample_type: int) -> tuple[Int64Column, Int64Column]:
    """(position of the first entry, number of entries); counters, where recorded, follow behind all entries."""
    branches = cursor.count()
    if branch_sample_type & spec.PERF_SAMPLE_BRANCH_HW_INDEX:
        cursor.skip(1)
    position = cursor.position
    has_counters = bool(branch_sample_type & spec.PERF_SAMPLE_BRANCH_COUNTERS)
    cursor.skip(branches * (BRANCH_ENTRY_WORDS + has_counters))
    return position, branches


def _registers(cursor: FieldCursor, mask: int) -> Int64Column:
    """Position of the first register, -1 where none were saved (abi 0)."""
    has_registers = cursor.word() != 0
    position = np.where(has_registers, cursor.position, -1)
    cursor.skip(has_registers * mask.bit_count())
    return position


def _stack_dump(cursor: FieldCursor) -> tuple[Int64Column, Int64Column]:
    """(position, valid bytes): size, data, then, unless empty, how much of the data is valid."""
    size_bytes = np.minimum(cursor.word(), np.uint64(1 << 20)).astype(np.int64)
    position = cursor.position
    cursor.skip((size_bytes + 7) // 8)
    has_data = size_bytes > 0
    valid_bytes = np.zeros(len(size_bytes), np.int64)
    inside = has_data & (cursor.position < cursor.end)
    valid_bytes[inside] = np.minimum(cursor.words[cursor.position[inside]], np.uint64(1 << 20)).astype(np.int64)
    cursor.skip(has_data.astype(np.int64))
    return position, np.minimum(valid_bytes, size_bytes)


def _skip_tail(cursor: FieldCursor, layout: SampleLayout) -> None:
    """The fields behind the stack dump."""
    one_word = (spec.PERF_SAMPLE_WEIGHT | spec.PERF_SAMPLE_WEIGHT_STRUCT, spec.PERF_SAMPLE_DATA_SRC,
                spec.PERF_SAMPLE_TRANSACTION)  # fmt: skip
    cursor.skip(sum(layout.has(field) for field in one_word))
    if layout.has(spec.PERF_SAMPLE_REGS_INTR):
        _registers(cursor, layout.interrupt_registers)
    late_word = (spec.PERF_SAMPLE_PHYS_ADDR, spec.PERF_SAMPLE_CGROUP, spec.PERF_SAMPLE_DATA_PAGE_SIZE,
                 spec.PERF_SAMPLE_CODE_PAGE_SIZE)  # fmt: skip
    cursor.skip(sum(layout.has(field) for field in late_word))
    if layout.has(spec.PERF_SAMPLE_AUX):
        size_bytes = np.minimum(cursor.word(), np.uint64(1 << 20)).astype(np.int64)
        cursor.skip((size_bytes + 7) // 8)
