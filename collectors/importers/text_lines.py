"""Text files into lines with bounded memory, whatever their encoding and line ends."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import BinaryIO

_BLOCK_BYTES = 1 << 20
# No sample, frame or folded stack is longer; what follows on such a line is left out, so that a file without line ends does
# not become one string.
_LONGEST_LINE = 1 << 20

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


def line_blocks(stream: BinaryIO) -> Iterator[list[str]]:
    """The lines of a text without their ends, some at a time; the last needs no end.

    UTF-8, where bytes that are none are kept as lone surrogates, or UTF-16 with or without a byte order mark.  Lines end with
    LF or CR LF.
    """
    block = stream.read(_BLOCK_BYTES)
    encoding, mark_bytes = text_encoding(block)
    errors = "surrogateescape" if encoding == "utf-8" else "replace"
    decoder = codecs.getincrementaldecoder(encoding)(errors)
    block, rest, is_cut = block[mark_bytes:], "", False
    while block:
        lines = (rest + decoder.decode(block)).split("\n")
        if is_cut and len(lines) > 1:
            lines, is_cut = lines[1:], False
        rest = "" if is_cut else lines[-1]
        yield [line.removesuffix("\r") for line in lines[:-1]]
        if len(rest) > _LONGEST_LINE:
            yield [rest[:_LONGEST_LINE]]
            rest, is_cut = "", True
        block = stream.read(_BLOCK_BYTES)
    last = "" if is_cut else rest + decoder.decode(b"", final=True)
    if last:
        yield [last.removesuffix("\r")]


def first_lines(head: bytes) -> list[str]:
    """The lines of a file's first bytes; the last may be cut."""
    encoding, mark_bytes = text_encoding(head)
    return head[mark_bytes:].decode(encoding, "replace").replace("\r\n", "\n").split("\n")


def text_encoding(head: bytes) -> tuple[str, int]:
    """(encoding, bytes of the mark that says so) of a text that begins with ``head``."""
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding, len(mark)
    # Without a mark, ASCII text in UTF-16 has a zero in every other byte.
    if head[1:8:2] and not any(head[1:8:2]):
        return "utf-16-le", 0
    if head[0:8:2] and not any(head[0:8:2]):
        return "utf-16-be", 0
    return "utf-8", 0
