"""Where the sequences of a line number program begin, found without running it.

A program is mostly sequences of functions that nobody asked for.  Each ends with DW_LNE_end_sequence, and the next one states
its address with DW_LNE_set_address, behind at most a few opcodes that only set registers: these bytes are searched for.  A
sequence that does not end where it should makes the whole program run (``debug_info``).
"""

from __future__ import annotations

import re

import numpy as np

from profiler.model.arrays import Int64Column, UInt64Column
from profiler.model.quick_dataclass import dataclass
from symbolize.dwarf.line_header import LineHeader

# set_file, set_column, set_isa with their operand; flags; DW_LNE_set_discriminator (4).
_REGISTERS = rb"(?:[\x04\x05\x0c][\x80-\xff]*[\x00-\x7f]|[\x06\x07\x0a\x0b]|\x00[\x02-\x06]\x04[\x80-\xff]*[\x00-\x7f])*"
_FIRST = re.compile(_REGISTERS + rb"\x00\x09\x02(.{8})", re.DOTALL)
_FURTHER = re.compile(rb"\x00\x01\x01(?=" + _REGISTERS + rb"\x00\x09\x02(.{8}))", re.DOTALL)
_SMALLEST_OPCODE_BASE = 13


@dataclass(frozen=True, slots=True)
class LineSequences:
    """``address``: link address of the first row; ``begin``, ``end``: positions in ``LineHeader.data``."""

    address: UInt64Column
    begin: Int64Column
    end: Int64Column


def find_sequences(header: LineHeader) -> LineSequences | None:
    """The program's sequences in its order, None when it does not begin as expected."""
    data, start = header.data, header.program_start
    first = _FIRST.match(data, start)
    if first is None or header.opcode_base < _SMALLEST_OPCODE_BASE:
        return None
    begin, address = [start], [first[1]]
    for boundary in _FURTHER.finditer(data, start):
        begin.append(boundary.end())
        address.append(boundary[1])
    return LineSequences(
        np.frombuffer(b"".join(address), "<u8"), np.array(begin, np.int64), np.array([*begin[1:], len(data)], np.int64)
    )
