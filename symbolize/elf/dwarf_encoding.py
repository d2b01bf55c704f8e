"""Numbers as DWARF and .eh_frame encode them (DWARF 5, 7.6; LSB core, "DWARF Extensions")."""

from __future__ import annotations

from collections.abc import Sequence

DW_EH_PE_OMIT = 0xFF

_FORMAT_SIZES = {0x0: 8, 0x2: 2, 0x3: 4, 0x4: 8, 0x8: 8, 0xA: 2, 0xB: 4, 0xC: 8}
_DW_EH_PE_ULEB128, _DW_EH_PE_SLEB128 = 0x1, 0x9
_SIGNED_FORMATS = 0x8
_RELATIVE_MASK, _DW_EH_PE_PCREL, _DW_EH_PE_DATAREL = 0x70, 0x10, 0x30
_WORD = 2**64


def uleb128(data: Sequence[int], position: int) -> tuple[int, int]:
    """(value, position behind it).  Raises ``IndexError`` at the end of ``data``; longer than 64 bits is cut off."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        if shift < 64:
            value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, position


def sleb128(data: Sequence[int], position: int) -> tuple[int, int]:
    """(value, position behind it).  Raises ``IndexError`` at the end of ``data``."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        if shift < 64:
            value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (value - (1 << shift) if byte & 0x40 and shift < 64 else value), position


def encoded_pointer(data: memoryview, position: int, encoding: int, bases: tuple[int, int] = (0, 0)) -> tuple[int, int]:
    """(value, position behind it) of a pointer with a DW_EH_PE ``encoding``.

    ``bases``: link address of ``data[0]`` (for pcrel) and the base for datarel.  Raises ``IndexError`` at the end of ``data``
    and ``ValueError`` for an encoding that does not occur in x86-64 frames; the "indirect" bit is not followed.
    """
    value_format, relative = encoding & 0xF, encoding & _RELATIVE_MASK
    if value_format == _DW_EH_PE_ULEB128:
        value, end = uleb128(data, position)
    elif value_format == _DW_EH_PE_SLEB128:
        value, end = sleb128(data, position)
    else:
        if value_format not in _FORMAT_SIZES:
            raise ValueError(f"pointer encoding {encoding:#x}")
        end = position + _FORMAT_SIZES[value_format]
        if end > len(data):
            raise IndexError(position)
        value = int.from_bytes(data[position:end], "little", signed=bool(value_format & _SIGNED_FORMATS))
    if relative == _DW_EH_PE_PCREL:
        value += bases[0] + position
    elif relative == _DW_EH_PE_DATAREL:
        value += bases[1]
    elif relative:
        raise ValueError(f"pointer encoding {encoding:#x}")
    return value % _WORD, end
