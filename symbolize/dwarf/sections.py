"""The debug sections of one ELF file."""

from __future__ import annotations

import numpy as np

from profiler.model.arrays import UInt64Column
from profiler.model.quick_dataclass import dataclass
from symbolize.elf.image import ElfImage

STRING_CHUNK_BYTES = 128


@dataclass(frozen=True, slots=True)
class DwarfSections:
    """Section contents, decompressed; an absent section is empty.

    ``text_low``, ``text_high``: bounds of the executable segments in link addresses.  Code described outside of them was
    discarded by the linker.  ``supplementary_strings``: .debug_str of the file that dwz shares between programs.
    """

    info: memoryview
    abbrev: bytes
    line: memoryview
    strings: memoryview
    line_strings: bytes
    aranges: memoryview
    ranges: memoryview
    rnglists: bytes
    addresses: memoryview
    string_offsets: memoryview
    supplementary_strings: memoryview
    text_low: int
    text_high: int


def read_sections(image: ElfImage) -> DwarfSections | None:
    """The debug sections of ``image``, None when it has no debug information."""
    info = section_contents(image, ".debug_info")
    if not len(info):
        return None
    text = [segment for segment in image.load_segments if segment.is_executable]
    return DwarfSections(
        info=info,
        abbrev=bytes(section_contents(image, ".debug_abbrev")),
        line=section_contents(image, ".debug_line"),
        strings=section_contents(image, ".debug_str"),
        line_strings=bytes(section_contents(image, ".debug_line_str")),
        aranges=section_contents(image, ".debug_aranges"),
        ranges=section_contents(image, ".debug_ranges"),
        rnglists=bytes(section_contents(image, ".debug_rnglists")),
        addresses=section_contents(image, ".debug_addr"),
        string_offsets=section_contents(image, ".debug_str_offsets"),
        supplementary_strings=memoryview(b""),
        text_low=min((segment.link_address for segment in text), default=0),
        text_high=max((segment.link_address + segment.memory_size for segment in text), default=0),
    )


def section_contents(image: ElfImage, name: str) -> memoryview:
    found = image.section_bytes(name)
    return memoryview(b"") if found is None else found


def read_string(section: memoryview, offset: int) -> bytes:
    """The zero-terminated string at ``offset``; IndexError when it is not inside the section."""
    if not 0 <= offset < len(section):
        raise IndexError(f"string offset 0x{offset:x} outside of the section")
    size = STRING_CHUNK_BYTES
    while True:
        chunk = bytes(section[offset : offset + size])
        end = chunk.find(0)
        if end >= 0:
            return chunk[:end]
        if offset + size >= len(section):
            raise IndexError(f"string at offset 0x{offset:x} has no end")
        size *= 4


def in_text(sections: DwarfSections, low: UInt64Column, high: UInt64Column) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which ranges describe code that is in the file: linkers leave 0, 1, -1 or -2 as the address of what they dropped.

    A range that begins in the text may end beyond it: Go's last one does, by a byte.
    """
    inside: np.ndarray[tuple[int], np.dtype[np.bool_]] = (
        (low > 0) & (low < high) & (low >= sections.text_low) & (low < sections.text_high)
    )
    return inside
