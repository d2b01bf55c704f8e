"""Little-endian base 128 numbers (DWARF 5, section 7.6)."""

from __future__ import annotations


def read_unsigned(data: bytes, position: int) -> tuple[int, int]:
    """(value, position behind it).  IndexError when the number runs past the end of ``data``."""
    value = data[position]
    if value < 0x80:
        return value, position + 1
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def read_signed(data: bytes, position: int) -> tuple[int, int]:
    """As ``read_unsigned``, for two's complement numbers."""
    byte = data[position]
    if byte < 0x80:
        return (byte - 0x80 if byte & 0x40 else byte), position + 1
    second = data[position + 1]
    if second < 0x80:
        value = byte & 0x7F | second << 7
        return (value - 0x4000 if second & 0x40 else value), position + 2
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (value - (1 << shift) if byte & 0x40 else value), position


def skip_number(data: bytes, position: int) -> int:
    """Position behind the number at ``position``."""
    while data[position] >= 0x80:
        position += 1
    return position + 1
