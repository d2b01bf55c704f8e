"""Damage to files: of any bytes, and of the fields that a format gives its readers to trust.

Every mutation is a function of a random generator and bytes, so that a seed repeats it.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from random import Random

Mutation = Callable[[Random, bytes], bytes]
NUMBERS = (0, 1, 2, 3, 4, 7, 8, 15, 16, 24, 31, 63, 64, 127, 128, 255, 256, 4095, 4096, 0x7FFF, 0xFFF8, 0xFFFF)  # fmt: skip
LARGE_NUMBERS = (
    2**31 - 1,
    2**31,
    2**32 - 8,
    2**32 - 1,
    2**32,
    2**47,
    2**62,
    2**63 - 1,
    2**63,
    2**64 - 4096,
    2**64 - 8,
    2**64 - 1,
)
LEB128S = (
    b"\x00", b"\x7f", b"\xff\x7f", b"\x80\x80\x80\x80\x08", b"\xff\xff\xff\xff\x0f", b"\xff" * 9 + b"\x01",
    b"\x80" * 9 + b"\x02",
    b"\x80" * 9 + b"\x7f", b"\xff" * 30, b"\x80" * 20 + b"\x00",
)  # fmt: skip
PERF_MAGIC = b"PERFILE2"
_WIDTHS = {1: "<B", 2: "<H", 4: "<I", 8: "<Q"}


def mutated(rng: Random, data: bytes, mutation: Mutation) -> bytes:
    """One to four mutations, most often one."""
    for _ in range(rng.choice((1, 1, 1, 2, 2, 4))):
        data = mutation(rng, data) if rng.random() < 0.7 else any_bytes(rng, data)
    return data


def any_bytes(rng: Random, data: bytes) -> bytes:
    """Bits, bytes, numbers of any width, pieces that are cut out, doubled or exchanged, ends that are missing."""
    out = bytearray(data)
    at = rng.randrange(len(out)) if out else 0
    kind = rng.randrange(8)
    length = min(len(out) - at, rng.choice((1, 2, 8, 64, 1000)))
    if not out or kind == 0:
        out[at:at] = rng.randbytes(rng.choice((1, 3, 8, 100)))
    elif kind == 1:
        out[at] ^= 1 << rng.randrange(8)
    elif kind == 2:
        out[at : at + length] = rng.randbytes(length)
    elif kind in (3, 4):
        _put_number(rng, out, at, rng.choice((1, 2, 4, 8)))
    elif kind == 5:
        del out[at : len(out) if rng.random() < 0.5 else at + length]
    elif kind == 6:
        out[at:at] = out[at : at + length] * rng.choice((1, 2, 50))
    else:
        other = rng.randrange(len(out))
        out[at : at + length] = out[other : other + length]
    return bytes(out)


def _put_number(rng: Random, out: bytearray, at: int, width: int) -> None:
    """Puts a number where trouble begins, or one that is a little off."""
    if at < 0 or at + width > len(out):
        return
    (old,) = struct.unpack_from(_WIDTHS[width], out, at)
    near = (old + 1, old - 1, old + 8, old - 8, old * 2, len(out), len(out) - at, at)
    new = rng.choice((rng.choice(NUMBERS), rng.choice(LARGE_NUMBERS), rng.choice(near), rng.getrandbits(8 * width)))
    struct.pack_into(_WIDTHS[width], out, at, new & (1 << 8 * width) - 1)


def perf_data(rng: Random, data: bytes) -> bytes:
    """Header, attributes and feature table of a file, or the records of either mode."""
    out = bytearray(data)
    if data[:8] != PERF_MAGIC or len(data) < 16:
        return any_bytes(rng, data)
    if struct.unpack_from("<Q", data, 8)[0] == 16 or len(data) < 104:
        return records(rng, data, 16, len(data))
    entry, attributes_at, attributes_bytes, data_at, data_bytes = struct.unpack_from("<5Q", data, 16)
    kind = rng.randrange(10)
    if kind == 0:
        _put_number(rng, out, 8 * rng.randrange(1, 13), 8)
    elif kind == 1 and attributes_bytes < len(data):
        _put_number(rng, out, attributes_at + 4 * rng.randrange(max(1, attributes_bytes // 4)), rng.choice((4, 8)))
    elif kind == 2 and entry < len(data):
        # sample_type, read_format, flags, branch type, user registers, user stack
        field = rng.choice((24, 32, 40, 72, 80, 88))
        at = attributes_at + rng.randrange(max(1, attributes_bytes // max(entry, 1))) * entry + field
        if at + 8 <= len(out):
            (old,) = struct.unpack_from("<Q", out, at)
            struct.pack_into("<Q", out, at, old ^ 1 << rng.randrange(26))
    elif kind in (3, 4) and data_at + data_bytes < len(data):
        table = data_at + data_bytes
        _put_number(rng, out, rng.randrange(table, min(len(data), table + 400)), rng.choice((2, 4, 8)))
    else:
        return records(rng, data, data_at, min(len(data), data_at + data_bytes))
    return bytes(out)


def record_starts(data: bytes, start: int, end: int) -> list[int]:
    starts = []
    while start + 8 <= end:
        starts.append(start)
        size = struct.unpack_from("<H", data, start + 6)[0]
        if size < 8:
            break
        start += size
    return starts


def records(rng: Random, data: bytes, start: int, end: int) -> bytes:
    """Type, size or any word of a record; records that are missing, doubled or exchanged."""
    starts = record_starts(data, start, end)
    if not starts:
        return any_bytes(rng, data)
    out = bytearray(data)
    at = rng.choice(starts)
    size = max(8, struct.unpack_from("<H", data, at + 6)[0])
    kind = rng.randrange(8)
    if kind == 0:
        _put_number(rng, out, at + 6, 2)
    elif kind == 1:
        struct.pack_into("<I", out, at, rng.choice((*range(22), *range(64, 86), 2**32 - 1)))
    elif kind == 2:
        _put_number(rng, out, at + 4, 2)
    elif kind in (3, 4, 5):
        _put_number(rng, out, at + 8 * rng.randrange(1, max(2, size // 8)) + rng.choice((0, 0, 0, 4)), rng.choice((4, 8)))
    elif kind == 6:
        del out[at : at + size]
    else:
        other = rng.choice(starts)
        out[other:other] = out[at : at + size]
    return bytes(out)


def elf(rng: Random, data: bytes) -> bytes:
    """File header, program and section headers, and the bytes of sections other than code."""
    if data[:4] != b"\x7fELF" or len(data) < 64:
        return any_bytes(rng, data)
    out = bytearray(data)
    programs_at, sections_at = struct.unpack_from("<QQ", data, 32)
    program_count, section_count = (struct.unpack_from("<H", data, at)[0] for at in (56, 60))
    kind = rng.randrange(10)
    if kind == 0:
        at, width = rng.choice(
            ((16, 2), (18, 2), (24, 8), (32, 8), (40, 8), (54, 2), (56, 2), (58, 2), (60, 2), (62, 2), (4, 1), (5, 1))
        )
        _put_number(rng, out, at, width)
    elif kind == 1 and program_count:
        at, width = rng.choice(((0, 4), (4, 4), (8, 8), (16, 8), (32, 8), (40, 8)))
        _put_number(rng, out, programs_at + 56 * rng.randrange(program_count) + at, width)
    elif kind in (2, 3) and section_count:
        at, width = rng.choice(((0, 4), (4, 4), (8, 8), (16, 8), (24, 8), (32, 8), (40, 4), (44, 4), (48, 8), (56, 8)))
        _put_number(rng, out, sections_at + 64 * rng.randrange(section_count) + at, width)
    else:
        return _section_content(rng, out, sections_at, section_count)
    return bytes(out)


def _section_content(rng: Random, out: bytearray, sections_at: int, section_count: int) -> bytes:
    places = []
    for row in range(1, section_count):
        header = sections_at + 64 * row
        if header + 64 <= len(out):
            kind, flags, _, offset, size = struct.unpack_from("<IQQQQ", out, header + 4)
            if kind != 8 and not flags & 4 and 0 < size <= len(out) - offset:
                places.append((offset, size))
    if not places:
        return any_bytes(rng, bytes(out))
    offset, size = rng.choice(places)
    for _ in range(rng.choice((1, 1, 3, 20))):
        at = offset + (rng.randrange(min(size, 32)) if rng.random() < 0.2 else rng.randrange(size))
        if rng.random() < 0.4:
            new = rng.choice(LEB128S)[: offset + size - at]
            out[at : at + len(new)] = new
        else:
            _put_number(rng, out, at, rng.choice((1, 1, 2, 4, 8)))
    return bytes(out)


def text(extra: Sequence[str]) -> Mutation:
    """Lines and words of a text that are missing, doubled, exchanged or replaced, also by the words of ``extra``."""
    words = [word.encode("utf-8", "surrogateescape") for word in (*extra, *_WORDS)]

    def mutation(rng: Random, data: bytes) -> bytes:
        separator = rng.choice((rb"(\n)", rb"([ \t]+)", rb"([^\w]+)"))
        parts = re.split(separator, data)
        at = rng.randrange(len(parts))
        kind = rng.randrange(5)
        if kind == 0:
            parts[at] = rng.choice(words)
        elif kind == 1:
            parts.insert(at, rng.choice(words))
        elif kind == 2:
            del parts[at]
        elif kind == 3:
            parts[at] *= rng.choice((2, 3, 5000))
        else:
            other = rng.randrange(len(parts))
            parts[at], parts[other] = parts[other], parts[at]
        return b"".join(parts)

    return mutation


_WORDS = (
    "", "0", "-1", "1e999", "99999999999999999999999", "0x", "ffffffffffffffff", "\x00", "\r\n", "\n\n", "\t", ";", "(", ")",
    "[", "]", "\ufeff", "\ud800".encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape"), "é", "\u202e",
    "\x1b[31m", "\udcff",
)  # fmt: skip


def tables(rng: Random, data: bytes) -> bytes:
    """Numbers at multiples of their width, for formats that are tables of columns."""
    out = bytearray(data)
    width = rng.choice((1, 4, 8))
    _put_number(rng, out, width * rng.randrange(max(1, len(out) // width)), width)
    return bytes(out)
