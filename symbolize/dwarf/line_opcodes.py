"""Line number programs cut into their opcodes, all at once (DWARF 5, section 6.2.5).

Where an opcode ends is worked out for every byte as if one began there, which takes no loop over the bytes; then those that do
begin are followed, eight at a time.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from profiler.model.arrays import Int64Column, UInt8Column, UInt64Column
from profiler.model.quick_dataclass import dataclass
from symbolize.dwarf.constants import (
    DW_LNS_advance_line,
    DW_LNS_advance_pc,
    DW_LNS_copy,
    DW_LNS_fixed_advance_pc,
    DW_LNS_negate_stmt,
    DW_LNS_set_column,
    DW_LNS_set_file,
)

# Operands of a damaged program are read up to this far behind its end.
PADDING = bytes(32)
MOST_NUMBER_BYTES = 10
OPCODES = 256
EXTENDED = 0
# Operands in LEB128 of the opcodes that are understood, whatever the header says.
KNOWN_OPERANDS = {
    DW_LNS_copy: 0,
    DW_LNS_advance_pc: 1,
    DW_LNS_advance_line: 1,
    DW_LNS_set_file: 1,
    DW_LNS_set_column: 1,
    DW_LNS_negate_stmt: 0,
    DW_LNS_fixed_advance_pc: 0,
}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LineOpcodes:
    """``data``: the program and PADDING.  One row per opcode, in order: its ``position`` and its ``code``."""

    data: UInt8Column
    position: Int64Column
    code: UInt8Column

    def unsigned(self, rows: Int64Column) -> UInt64Column:
        """The LEB128 operand of some opcodes, modulo 2**64."""
        return _numbers(self.data, self.position[rows] + 1)[0]

    def signed(self, rows: Int64Column) -> Int64Column:
        """The same as a two's complement number."""
        value, size = _numbers(self.data, self.position[rows] + 1)
        unused = np.maximum(64 - 7 * size, 0)
        return (value << unused.astype(np.uint64)).view(np.int64) >> unused

    def two_bytes(self, rows: Int64Column) -> UInt64Column:
        """The operand of DW_LNS_fixed_advance_pc."""
        first = self.position[rows] + 1
        return self.data[first].astype(np.uint64) | self.data[first + 1].astype(np.uint64) << np.uint64(8)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExtendedOpcodes:
    """Rows of the extended ones among the opcodes; their own ``code``, 0 = none; position of the ``operand``, and its
    ``size`` in bytes."""

    row: Int64Column
    code: UInt8Column
    operand: Int64Column
    size: UInt64Column


def find_opcodes(program: bytes, opcode_base: int, operand_counts: bytes) -> LineOpcodes:
    """The opcodes that follow one another from the first byte on.  ValueError when a number has no end."""
    data = np.frombuffer(program + PADDING, np.uint8)
    strides = [_following(program, data, _operands(opcode_base, operand_counts))]
    for _ in range(3):
        strides.append(strides[-1][strides[-1]])
    position = _followed(strides, len(program))
    return LineOpcodes(data, position, data[position])


def extended_opcodes(opcodes: LineOpcodes) -> ExtendedOpcodes:
    row = np.flatnonzero(opcodes.code == EXTENDED)
    first = opcodes.position[row] + 1
    size, length = _numbers(opcodes.data, first)
    code = np.where(size > 0, opcodes.data[first + length], np.uint8(0))
    return ExtendedOpcodes(row, code, first + length + 1, size - np.uint64(1))


def eight_bytes(opcodes: LineOpcodes, positions: Int64Column) -> UInt64Column:
    """Little-endian numbers anywhere in the program."""
    return np.ascontiguousarray(opcodes.data[positions[:, None] + np.arange(8)]).view("<u8").reshape(-1)


@lru_cache(maxsize=16)
def _operands(opcode_base: int, operand_counts: bytes) -> tuple[bytes, bytes]:
    """By opcode: (how many operands in LEB128 it has, bytes with the opcode itself if each operand is one byte)."""
    counts, sizes = bytearray(OPCODES), bytearray([1]) * OPCODES
    for code in range(1, opcode_base):
        counts[code] = KNOWN_OPERANDS.get(code, operand_counts[code])
        sizes[code] = min(1 + counts[code] + 2 * (code == DW_LNS_fixed_advance_pc), 255)
    return bytes(counts), bytes(sizes)


def _following(program: bytes, data: UInt8Column, operands: tuple[bytes, bytes]) -> Int64Column:
    """For each byte of ``program``, and the end behind them, the position behind the opcode that would begin there; one more
    than the end where its operands have no end before."""
    size = len(program)
    counts, sizes = operands
    following = np.arange(size + 2)
    following[:size] += np.frombuffer(program.translate(sizes), np.uint8)
    count = np.frombuffer(program.translate(counts), np.uint8)
    may_be_long = data[1 : size + 1] >= 0x80 if max(counts) == 1 else np.ones(size, np.bool_)
    for number in range(max(counts), 0, -1):
        rows = np.flatnonzero((count >= number) & may_be_long)
        last = following[rows] - number
        is_long = data[np.minimum(last, len(data) - 1)] >= 0x80
        while np.any(is_long):
            rows, last = rows[is_long], last[is_long] + 1
            following[rows] += 1
            is_long = data[np.minimum(last, len(data) - 1)] >= 0x80
    np.minimum(following, size + 1, out=following)
    extended = np.flatnonzero(data[:size] == EXTENDED)
    length, number_bytes = _numbers(data, extended + 1)
    code = extended + 1 + number_bytes
    # Behind an opcode that is longer than the program comes nothing.
    end = np.minimum(code + np.minimum(length, np.uint64(size)).astype(np.int64), size)
    following[extended] = np.where(code + (length > 0) > size, size + 1, end)
    following[size:] = (size, size + 1)
    return following


def _followed(strides: list[Int64Column], size: int) -> Int64Column:
    """Positions of the opcodes.  ``strides``: the position one, two, four and eight opcodes further on."""
    one, two, four, eight = strides
    anchors: list[int] = []
    far = memoryview(eight.data)
    position = 0
    while position < size:
        anchors.append(position)
        position = far[position]
    if position > size:
        raise ValueError("operand past the end of the line program")
    table = np.empty((len(anchors), 8), np.int64)
    table[:, 0] = anchors
    table[:, 1] = one[table[:, 0]]
    table[:, 2:4] = two[table[:, :2]]
    table[:, 4:] = four[table[:, :4]]
    found = table.reshape(-1)
    return found[: int(np.searchsorted(found, size))]


def _numbers(data: UInt8Column, first: Int64Column) -> tuple[UInt64Column, Int64Column]:
    """(numbers in LEB128 without their sign, modulo 2**64, bytes of each)."""
    byte = data[first]
    value, length = (byte & 0x7F).astype(np.uint64), np.ones(len(first), np.int64)
    rows = np.flatnonzero(byte >= 0x80)
    for more in range(1, MOST_NUMBER_BYTES):
        if not len(rows):
            break
        byte = data[np.minimum(first[rows] + more, len(data) - 1)]
        value[rows] |= (byte & 0x7F).astype(np.uint64) << np.uint64(7 * more)
        length[rows] += 1
        rows = rows[byte >= 0x80]
    return value, length
