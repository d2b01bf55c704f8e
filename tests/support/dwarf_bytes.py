"""A small assembler for DWARF sections, written from the standard: byte strings for tests of the decoder."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from symbolize.dwarf.sections import DwarfSections

TEXT_LOW, TEXT_HIGH = 0x1000, 0x9000


def uleb(value: int) -> bytes:
    out = bytearray()
    while True:
        byte, value = value & 0x7F, value >> 7
        out.append(byte | (0x80 if value else 0))
        if not value:
            return bytes(out)


def sleb(value: int) -> bytes:
    out = bytearray()
    while True:
        byte, value = value & 0x7F, value >> 7
        done = (value == 0 and not byte & 0x40) or (value == -1 and byte & 0x40)
        out.append(byte | (0 if done else 0x80))
        if done:
            return bytes(out)


def abbreviation(code: int, tag: int, has_children: bool, *pairs: tuple[int, ...]) -> bytes:
    """``pairs``: (attribute, form) or (attribute, DW_FORM_implicit_const, value)."""
    body = b"".join(uleb(pair[0]) + uleb(pair[1]) + (sleb(pair[2]) if len(pair) > 2 else b"") for pair in pairs)
    return uleb(code) + uleb(tag) + bytes([has_children]) + body + b"\0\0"


def unit_4(body: bytes, abbrev_offset: int = 0, version: int = 4) -> bytes:
    rest = struct.pack("<HIB", version, abbrev_offset, 8) + body
    return struct.pack("<I", len(rest)) + rest


def unit_5(body: bytes, abbrev_offset: int = 0, unit_type: int = 1) -> bytes:
    rest = struct.pack("<HBBI", 5, unit_type, 8, abbrev_offset) + body
    return struct.pack("<I", len(rest)) + rest


def line_unit_4(files: Sequence[bytes], program: bytes, directories: Sequence[bytes] = ()) -> bytes:
    """Line program of version 4: line_base -5, line_range 14, opcode_base 13 (the values GNU as writes)."""
    tables = b"".join(name + b"\0" for name in directories) + b"\0"
    tables += b"".join(name + b"\0" + bytes([min(len(directories), 1), 0, 0]) for name in files) + b"\0"
    header = bytes([1, 1, 1]) + struct.pack("<bBB", -5, 14, 13) + bytes([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1]) + tables
    rest = struct.pack("<HI", 4, len(header)) + header + program
    return struct.pack("<I", len(rest)) + rest


def line_unit_5(directories: Sequence[bytes], files: Sequence[tuple[bytes, int]], program: bytes) -> bytes:
    """Line program of version 5 with inline strings (DW_FORM_string 8, DW_FORM_udata 15)."""
    tables = bytes([1, 1, 8]) + uleb(len(directories)) + b"".join(name + b"\0" for name in directories)
    tables += bytes([2, 1, 8, 2, 15]) + uleb(len(files)) + b"".join(name + b"\0" + uleb(number) for name, number in files)
    header = bytes([1, 1, 1]) + struct.pack("<bBB", -5, 14, 13) + bytes([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1]) + tables
    rest = struct.pack("<HBBI", 5, 8, 0, len(header)) + header + program
    return struct.pack("<I", len(rest)) + rest


def set_address(address: int) -> bytes:
    return b"\0\x09\x02" + struct.pack("<Q", address)


END_SEQUENCE = b"\0\x01\x01"


def sections(**contents: bytes) -> DwarfSections:
    """Sections by field name, the others empty; code lies in TEXT_LOW to TEXT_HIGH."""
    views = {name: memoryview(contents.get(name, b"")) for name in DwarfSections.__slots__ if not name.startswith("text_")}
    for name in ("abbrev", "line_strings", "rnglists"):
        views[name] = contents.get(name, b"")  # type: ignore[assignment]
    return DwarfSections(**views, text_low=TEXT_LOW, text_high=TEXT_HIGH)  # type: ignore[arg-type]
