"""An ELF file as the symbolizer and the unwinder see it: segments, sections, build ID and conversions of addresses."""

from __future__ import annotations

import mmap
import struct
import zlib
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import numpy as np

from profiler.errors import FormatError
from profiler.model.arrays import UInt64Column
from symbolize.elf.layout import (
    PT_DYNAMIC,
    PT_GNU_EH_FRAME,
    PT_LOAD,
    PT_NOTE,
    SHF_COMPRESSED,
    SHT_NOBITS,
    SHT_NOTE,
    read_layout,
)
from symbolize.elf.layout import Section as Section
from symbolize.elf.layout import Segment as Segment
from symbolize.elf.original_layout import with_original_offsets
from symbolize.elf.symbol_table import SymbolTable, parse_symbol_table

NO_ADDRESS = np.uint64(0xFFFF_FFFF_FFFF_FFFF)

_NT_GNU_BUILD_ID = 3
_ELFCOMPRESS_ZLIB, _ELFCOMPRESS_ZSTD = 1, 2
_COMPRESSION_HEADER = struct.Struct("<IIQQ")
# DEFLATE cannot reach more than 1032:1; a claim far beyond what the packed bytes can hold is damage, not data.
_LARGEST_COMPRESSION_RATIO = 4096


class ElfImage:
    """One ELF-64 little-endian file; never changes once it is made.

    ``name``: the file's name for messages.  ``data``: the whole file.  ``build_id``: raw bytes, empty when there is none.
    ``machine``, ``elf_type``, ``entry_address``: ``e_machine``, ``e_type``, ``e_entry``.  ``load_segments``: PT_LOAD in file
    order; of a debug file as they are in the program.  ``sections``: by name, the first of equal names.
    ``section_table``: all of them by index.
    ``frame_header_segment``, ``dynamic_segment``: PT_GNU_EH_FRAME and PT_DYNAMIC, or None.
    """

    __slots__ = (
        "_symbol_table",
        "build_id",
        "data",
        "dynamic_segment",
        "elf_type",
        "entry_address",
        "frame_header_segment",
        "load_segments",
        "machine",
        "name",
        "section_table",
        "sections",
    )

    def __init__(self, data: memoryview, name: str) -> None:
        layout = read_layout(data, name)
        self.name = name
        self.data = data
        self.machine = layout.machine
        self.elf_type = layout.elf_type
        self.entry_address = layout.entry_address
        self.load_segments = with_original_offsets([segment for kind, segment in layout.segments if kind == PT_LOAD])
        self.dynamic_segment = next((s for kind, s in layout.segments if kind == PT_DYNAMIC), None)
        self.frame_header_segment = next((s for kind, s in layout.segments if kind == PT_GNU_EH_FRAME), None)
        self.section_table = layout.sections
        by_name: dict[str, Section] = {}
        for section in layout.sections:
            by_name.setdefault(section.name, section)
        self.sections: Mapping[str, Section] = MappingProxyType(by_name)
        self._symbol_table: SymbolTable | None = None
        self.build_id = self._find_build_id([segment for kind, segment in layout.segments if kind == PT_NOTE])

    def __repr__(self) -> str:
        return f"ElfImage({self.name!r}, build ID {self.build_id.hex() or 'none'})"

    def section_bytes(self, name: str) -> memoryview | None:
        """The contents of a section, decompressed; ``None`` when it is absent or holds no bytes in the file (SHT_NOBITS).

        ``.debug_x`` is also found as the older ``.zdebug_x``.  Decompression is done on every call: keep the result.
        Raises ``FormatError`` when the section lies outside the file or cannot be decompressed.
        """
        section = self.sections.get(name)
        if section is None and name.startswith(".debug_"):
            section = self.sections.get(".zdebug_" + name.removeprefix(".debug_"))
        if section is None or section.type == SHT_NOBITS:
            return None
        raw = self._raw_bytes(section)
        if section.flags & SHF_COMPRESSED:
            return self._decompressed(section, raw)
        if section.name.startswith(".zdebug_"):
            return self._decompressed_old_style(section, raw)
        return raw

    def symbol_table(self) -> SymbolTable:
        """``parse_symbol_table`` of this image, done once: the unwinder asks for it and then the symbolizer."""
        if self._symbol_table is None:
            self._symbol_table = parse_symbol_table(self)
        return self._symbol_table

    def section_is_stored(self, name: str) -> bool:
        """Is there such a section, with its bytes in this file."""
        section = self.sections.get(name)
        return section is not None and section.type != SHT_NOBITS and section.size > 0

    def has_debug_info(self) -> bool:
        return self.section_is_stored(".debug_info") or self.section_is_stored(".zdebug_info")

    def link_addresses(self, file_offsets: UInt64Column) -> UInt64Column:
        """Link addresses of file offsets, through the PT_LOAD that contains each (executable ones first); all ones (2**64 -
        1) where none does.  Shape as given."""
        result = np.full(file_offsets.shape, NO_ADDRESS, np.uint64)
        for segment in sorted(self.load_segments, key=lambda s: s.is_executable):
            inside = file_offsets - np.uint64(segment.file_offset) < np.uint64(segment.file_size)
            bias = np.uint64((segment.link_address - segment.file_offset) % 2**64)
            result[inside] = file_offsets[inside] + bias
        return result

    def file_offsets(self, link_addresses: UInt64Column) -> UInt64Column:
        """The reverse of ``link_addresses``; all ones where no PT_LOAD holds bytes of the file for an address."""
        result = np.full(link_addresses.shape, NO_ADDRESS, np.uint64)
        for segment in sorted(self.load_segments, key=lambda s: s.is_executable):
            inside = link_addresses - np.uint64(segment.link_address) < np.uint64(segment.file_size)
            bias = np.uint64((segment.file_offset - segment.link_address) % 2**64)
            result[inside] = link_addresses[inside] + bias
        return result

    def _raw_bytes(self, section: Section) -> memoryview:
        end = section.file_offset + section.size
        if end > len(self.data):
            raise FormatError(self.name, f"section {section.name} ends beyond the end of the file", section.file_offset)
        return self.data[section.file_offset : end]

    def _decompressed(self, section: Section, raw: memoryview) -> memoryview:
        if len(raw) < _COMPRESSION_HEADER.size:
            raise FormatError(self.name, f"compressed section {section.name} is too short", section.file_offset)
        method, _, size, _ = _COMPRESSION_HEADER.unpack_from(raw)
        if method not in (_ELFCOMPRESS_ZLIB, _ELFCOMPRESS_ZSTD):
            raise FormatError(self.name, f"section {section.name}: unknown compression {method}", section.file_offset)
        return self._inflate(section, raw[_COMPRESSION_HEADER.size :], size, method == _ELFCOMPRESS_ZSTD)

    def _decompressed_old_style(self, section: Section, raw: memoryview) -> memoryview:
        if len(raw) < 12 or bytes(raw[:4]) != b"ZLIB":
            return raw
        return self._inflate(section, raw[12:], int.from_bytes(raw[4:12], "big"), False)

    def _inflate(self, section: Section, packed: memoryview, size: int, is_zstd: bool) -> memoryview:
        if size > _LARGEST_COMPRESSION_RATIO * max(len(packed), 1):
            raise FormatError(self.name, f"section {section.name} claims {size} bytes: damaged file", section.file_offset)
        plain = _zstd_decompress(packed, size) if is_zstd else _zlib_decompress(packed, size)
        if plain is None or len(plain) != size:
            raise FormatError(self.name, f"section {section.name} cannot be decompressed: damaged file", section.file_offset)
        return memoryview(plain)

    def _find_build_id(self, note_segments: list[Segment]) -> bytes:
        ranges = [(s.file_offset, s.size) for s in self.section_table if s.type == SHT_NOTE]
        ranges += [(s.file_offset, s.file_size) for s in note_segments]
        for offset, size in ranges:
            for alignment in (4, 8):
                found = gnu_build_id(self.data[offset : offset + size], alignment)
                if found:
                    return found
        return b""


def parse_image(data: bytes | memoryview | mmap.mmap, name: str) -> ElfImage:
    """Read the structure of an ELF file held in ``data``.  Raises ``FormatError`` for anything but a sane little-endian
    ELF-64 file."""
    return ElfImage(memoryview(data).cast("B"), name)


def gnu_build_id(notes: memoryview, alignment: int = 4) -> bytes:
    """The descriptor of the first NT_GNU_BUILD_ID note, empty when there is none (ELF notes: Elf64_Nhdr, name, descriptor,
    both padded to ``alignment``; /sys/kernel/notes has the same form)."""
    for name, kind, descriptor in _notes(notes, alignment):
        if kind == _NT_GNU_BUILD_ID and name == b"GNU\0":
            return descriptor
    return b""


def _notes(notes: memoryview, alignment: int) -> Iterator[tuple[bytes, int, bytes]]:
    position = 0
    while position + 12 <= len(notes):
        name_bytes, descriptor_bytes, kind = struct.unpack_from("<III", notes, position)
        descriptor_start = _aligned(position + 12 + name_bytes, alignment)
        end = descriptor_start + descriptor_bytes
        if end > len(notes):
            return
        yield bytes(notes[position + 12 : position + 12 + name_bytes]), kind, bytes(notes[descriptor_start:end])
        position = _aligned(end, alignment)


def _aligned(position: int, alignment: int) -> int:
    return (position + alignment - 1) // alignment * alignment


def _zlib_decompress(packed: memoryview, size: int) -> bytes | None:
    try:
        return zlib.decompressobj().decompress(packed, size) if size else b""
    except zlib.error:
        return None


def _zstd_decompress(packed: memoryview, size: int) -> bytes | None:
    import zstandard

    try:
        with zstandard.ZstdDecompressor().stream_reader(packed) as reader:
            return bytes(reader.read(size))
    except zstandard.ZstdError:
        return None
