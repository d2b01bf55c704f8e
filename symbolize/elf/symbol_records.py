"""Raw records of symbol sections (Elf64_Sym) and the strings they name."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from profiler.errors import FormatError
from symbolize.elf.layout import SHT_NOBITS, Section, SectionedFile

SYMBOL_RECORD = np.dtype(
    [
        ("st_name", "<u4"),
        ("st_info", "u1"),
        ("st_other", "u1"),
        ("st_shndx", "<u2"),
        ("st_value", "<u8"),
        ("st_size", "<u8"),
    ]
)

SymbolRecords: TypeAlias = npt.NDArray[np.void]


def symbol_records(image: SectionedFile, section: Section) -> tuple[SymbolRecords, memoryview]:
    """The records of one symbol section (dtype ``SYMBOL_RECORD``) and its string table."""
    count = section.size // SYMBOL_RECORD.itemsize
    if section.file_offset + count * SYMBOL_RECORD.itemsize > len(image.data):
        raise FormatError(image.name, f"section {section.name} ends beyond the end of the file", section.file_offset)
    records = np.frombuffer(image.data, SYMBOL_RECORD, count, section.file_offset)
    strings = memoryview(b"")
    if section.link < len(image.section_table) and image.section_table[section.link].type != SHT_NOBITS:
        linked = image.section_table[section.link]
        strings = image.data[linked.file_offset : linked.file_offset + linked.size]
    return records, strings


def string_at(strings: memoryview, offset: int) -> str:
    """The zero-terminated string at ``offset``, "" outside the table; bytes that are not UTF-8 are shown as ``\\xNN``."""
    length = 64
    while True:
        piece = bytes(strings[offset : offset + length])
        end = piece.find(b"\0")
        if end >= 0 or offset + length >= len(strings):
            return piece[: end if end >= 0 else len(piece)].decode("utf-8", "backslashreplace")
        length *= 8
