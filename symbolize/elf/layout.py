"""The ELF header, program headers and section headers as plain values.

Every count and offset is checked against the size of the file before anything is read, so that a damaged file costs time and
memory in proportion to its size at most.  Numbers are those of the ELF-64 object file format.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from profiler.errors import FormatError
from profiler.model.quick_dataclass import dataclass

ET_REL, ET_EXEC, ET_DYN = 1, 2, 3
EM_X86_64 = 62
PT_LOAD, PT_DYNAMIC, PT_NOTE, PT_GNU_EH_FRAME = 1, 2, 4, 0x6474E550
PF_X, PF_W = 1, 2
SHT_SYMTAB, SHT_RELA, SHT_NOTE, SHT_NOBITS, SHT_DYNSYM = 2, 4, 7, 8, 11
SHF_ALLOC, SHF_EXECINSTR, SHF_COMPRESSED = 2, 4, 0x800

_FILE_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")
_SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
_SHN_XINDEX = 0xFFFF
_PN_XNUM = 0xFFFF


class _FileHeader(NamedTuple):
    """``Elf64_Ehdr``."""

    e_ident: bytes
    e_type: int
    e_machine: int
    e_version: int
    e_entry: int
    e_phoff: int
    e_shoff: int
    e_flags: int
    e_ehsize: int
    e_phentsize: int
    e_phnum: int
    e_shentsize: int
    e_shnum: int
    e_shstrndx: int


class _ProgramHeader(NamedTuple):
    """``Elf64_Phdr``."""

    p_type: int
    p_flags: int
    p_offset: int
    p_vaddr: int
    p_paddr: int
    p_filesz: int
    p_memsz: int
    p_align: int


class _SectionHeader(NamedTuple):
    """``Elf64_Shdr``."""

    sh_name: int
    sh_type: int
    sh_flags: int
    sh_addr: int
    sh_offset: int
    sh_size: int
    sh_link: int
    sh_info: int
    sh_addralign: int
    sh_entsize: int


@dataclass(frozen=True, slots=True)
class Segment:
    """One program header.  Bytes ``file_offset`` .. ``+ file_size`` of the file are mapped at ``link_address``."""

    file_offset: int
    link_address: int
    file_size: int
    memory_size: int
    is_executable: bool
    is_writable: bool = False
    alignment: int = 1


@dataclass(frozen=True, slots=True)
class Section:
    """One section header; ``flags`` and ``type`` are the specification's numbers (``sh_flags``, ``sh_type``), ``link`` and
    ``entry_size`` its ``sh_link`` and ``sh_entsize``."""

    name: str
    link_address: int
    file_offset: int
    size: int
    flags: int
    type: int
    link: int = 0
    entry_size: int = 0

    @property
    def is_executable(self) -> bool:
        return bool(self.flags & SHF_EXECINSTR)


@dataclass(frozen=True, slots=True)
class Layout:
    """``segments``: (p_type, segment) in file order; ``sections``: in index order, the null section included."""

    elf_type: int
    machine: int
    entry_address: int
    segments: tuple[tuple[int, Segment], ...]
    sections: tuple[Section, ...]


class SectionedFile(Protocol):
    """What symbols are read from: an ``ElfImage``, which itself hands out the symbol table.

    ``sections``: by name; ``section_table``: by index.
    """

    @property
    def name(self) -> str: ...
    @property
    def data(self) -> memoryview: ...
    @property
    def machine(self) -> int: ...
    @property
    def sections(self) -> Mapping[str, Section]: ...
    @property
    def section_table(self) -> Sequence[Section]: ...


def read_layout(data: memoryview, name: str) -> Layout:
    """Parse the three kinds of headers of ``data``.  Raises ``FormatError`` unless it is a sane little-endian ELF-64 file."""
    if len(data) < _FILE_HEADER.size or bytes(data[:4]) != b"\x7fELF":
        raise FormatError(name, "not an ELF file")
    if data[4] != 2 or data[5] != 1:
        raise FormatError(name, "only 64-bit little-endian ELF files can be read", 4)
    header = _FileHeader(*_FILE_HEADER.unpack_from(data))
    section_headers = _section_headers(data, name, header)
    return Layout(
        elf_type=header.e_type,
        machine=header.e_machine,
        entry_address=header.e_entry,
        segments=_segments(data, name, header, section_headers),
        sections=_sections(data, header, section_headers),
    )


@dataclass(frozen=True, slots=True)
class _HeaderTable:
    """Where a table of headers lies, as the file header claims."""

    what: str
    offset: int
    count: int
    entry_bytes: int
    wanted_bytes: int

    def read(self, data: memoryview, name: str) -> memoryview:
        if self.count and self.entry_bytes != self.wanted_bytes:
            raise FormatError(
                name, f"{self.what} of {self.entry_bytes} bytes, not {self.wanted_bytes}: damaged file", self.offset
            )
        if self.offset > len(data) or self.count * self.wanted_bytes > len(data) - self.offset:
            raise FormatError(name, f"{self.what} end beyond the end of the file: truncated or damaged file", self.offset)
        return data[self.offset : self.offset + self.count * self.wanted_bytes]


def _section_headers(data: memoryview, name: str, header: _FileHeader) -> list[_SectionHeader]:
    if not header.e_shoff:
        return []
    count = header.e_shnum
    if count == 0:  # the real count stands in the null section
        count = _section_header_table(data, name, header, 1)[0].sh_size
    return _section_header_table(data, name, header, count)


def _section_header_table(data: memoryview, name: str, header: _FileHeader, count: int) -> list[_SectionHeader]:
    table = _HeaderTable("section headers", header.e_shoff, count, header.e_shentsize, _SECTION_HEADER.size)
    return [_SectionHeader(*fields) for fields in _SECTION_HEADER.iter_unpack(table.read(data, name))]


def _segments(
    data: memoryview, name: str, header: _FileHeader, section_headers: Sequence[_SectionHeader]
) -> tuple[tuple[int, Segment], ...]:
    count = header.e_phnum
    if count == _PN_XNUM and section_headers:
        count = section_headers[0].sh_info
    table = _HeaderTable("program headers", header.e_phoff, count, header.e_phentsize, _PROGRAM_HEADER.size)
    found = []
    for fields in _PROGRAM_HEADER.iter_unpack(table.read(data, name)):
        entry = _ProgramHeader(*fields)
        segment = Segment(
            file_offset=entry.p_offset,
            link_address=entry.p_vaddr,
            file_size=entry.p_filesz,
            memory_size=entry.p_memsz,
            is_executable=bool(entry.p_flags & PF_X),
            is_writable=bool(entry.p_flags & PF_W),
            alignment=entry.p_align,
        )
        found.append((entry.p_type, segment))
    return tuple(found)


def _sections(data: memoryview, header: _FileHeader, section_headers: Sequence[_SectionHeader]) -> tuple[Section, ...]:
    names_index = header.e_shstrndx
    if names_index == _SHN_XINDEX and section_headers:
        names_index = section_headers[0].sh_link
    names = b""
    if names_index < len(section_headers) and section_headers[names_index].sh_type != SHT_NOBITS:
        entry = section_headers[names_index]
        names = bytes(data[entry.sh_offset : entry.sh_offset + entry.sh_size])
    return tuple(
        Section(
            name=_text(names, entry.sh_name),
            link_address=entry.sh_addr,
            file_offset=entry.sh_offset,
            size=entry.sh_size,
            flags=entry.sh_flags,
            type=entry.sh_type,
            link=entry.sh_link,
            entry_size=entry.sh_entsize,
        )
        for entry in section_headers
    )


def _text(names: bytes, offset: int) -> str:
    end = names.find(b"\0", offset)
    return names[offset : end if end >= 0 else len(names)].decode("utf-8", "backslashreplace")
