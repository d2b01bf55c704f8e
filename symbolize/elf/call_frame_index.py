"""Which FDE covers an address: the search table of .eh_frame_hdr, or an index made by reading every entry once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from profiler.errors import FormatError
from profiler.model.arrays import Int64Column
from symbolize.elf.call_frame_section import CallFrameSection
from symbolize.elf.dwarf_encoding import DW_EH_PE_OMIT, encoded_pointer
from symbolize.elf.image import ElfImage

_ADDRESS_LIMIT = 2**62
_TABLE_ENCODING = 0x3B  # DW_EH_PE_datarel | DW_EH_PE_sdata4: the only one with a binary search table


class CallFrameIndex:
    """FDEs of one section by start address.

    ``starts``: link addresses, ascending; ``offsets``: each FDE's offset in ``section``.  FDEs may leave gaps: whether a
    candidate covers an address is for its own range to say.
    """

    __slots__ = ("offsets", "section", "starts")

    def __init__(self, section: CallFrameSection, starts: Int64Column, offsets: Int64Column) -> None:
        self.section = section
        self.starts = starts
        self.offsets = offsets

    def __len__(self) -> int:
        return len(self.starts)

    def candidates(self, link_addresses: Int64Column) -> Int64Column:
        """Row of the last FDE that starts at or before each address, -1 where there is none."""
        return np.searchsorted(self.starts, link_addresses, side="right").astype(np.int64) - 1


def call_frame_indexes(image: ElfImage) -> list[Callable[[], CallFrameIndex | None]]:
    """The image's indexes in the order in which they are to be asked: .eh_frame, then .debug_frame; each is built when
    called, and ``None`` when the section is absent or unusable."""
    return [lambda: _eh_frame_index(image), lambda: _debug_frame_index(image)]


def _eh_frame_index(image: ElfImage) -> CallFrameIndex | None:
    section = _eh_frame_section(image)
    if section is None:
        return None
    return _search_table(image, section) or _linear_index(section)


def _debug_frame_index(image: ElfImage) -> CallFrameIndex | None:
    try:
        data = image.section_bytes(".debug_frame")
    except FormatError:
        return None
    return None if data is None else _linear_index(CallFrameSection(data, 0, False, f"{image.name} (.debug_frame)"))


def _eh_frame_section(image: ElfImage) -> CallFrameSection | None:
    source = f"{image.name} (.eh_frame)"
    section = image.sections.get(".eh_frame")
    if section is not None:
        try:
            data = image.section_bytes(".eh_frame")
        except FormatError:
            return None
        return None if data is None else CallFrameSection(data, section.link_address, True, source)
    header = _frame_header(image)
    if header is None:
        return None
    data, link_address = header
    try:
        start, _ = encoded_pointer(data, 4, data[1], (link_address, link_address))
    except (IndexError, ValueError):
        return None
    for segment in image.load_segments:
        if 0 <= start - segment.link_address < segment.file_size:
            first = segment.file_offset + start - segment.link_address
            return CallFrameSection(image.data[first : segment.file_offset + segment.file_size], start, True, source)
    return None


def _frame_header(image: ElfImage) -> tuple[memoryview, int] | None:
    """Bytes and link address of .eh_frame_hdr, by its segment (or its section where program headers do not name it)."""
    segment = image.frame_header_segment
    if segment is not None:
        offset, size, link_address = segment.file_offset, segment.file_size, segment.link_address
    else:
        section = image.sections.get(".eh_frame_hdr")
        if section is None:
            return None
        offset, size, link_address = section.file_offset, section.size, section.link_address
    data = image.data[offset : offset + size]
    return (data, link_address) if len(data) >= 8 and data[0] == 1 else None


def _search_table(image: ElfImage, section: CallFrameSection) -> CallFrameIndex | None:
    header = _frame_header(image)
    if header is None:
        return None
    data, link_address = header
    if data[2] == DW_EH_PE_OMIT or data[3] != _TABLE_ENCODING:
        return None
    try:
        _, position = encoded_pointer(data, 4, data[1], (link_address, link_address))
        count, position = encoded_pointer(data, position, data[2], (link_address, link_address))
    except (IndexError, ValueError):
        return None
    if count == 0 or count * 8 > len(data) - position or max(link_address, section.link_address) >= _ADDRESS_LIMIT:
        return None
    table = np.frombuffer(data, "<i4", 2 * count, position).astype(np.int64) + link_address
    starts, offsets = table[0::2].copy(), table[1::2] - section.link_address
    if np.any(np.diff(starts) < 0) or offsets.min() < 0 or offsets.max() >= len(section.data):
        return None
    return CallFrameIndex(section, starts, offsets)


def _linear_index(section: CallFrameSection) -> CallFrameIndex | None:
    ranges = [(start, offset) for start, end, offset in section.fde_ranges() if start < end and end < _ADDRESS_LIMIT]
    if not ranges:
        return None
    table = np.array(sorted(ranges), np.int64)
    return CallFrameIndex(section, table[:, 0].copy(), table[:, 1].copy())
