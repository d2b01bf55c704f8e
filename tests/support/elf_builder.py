"""ELF-64 files made by hand, byte by byte from the specification, for what no tool at hand produces."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

PT_LOAD, PT_NOTE = 1, 4
SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_NOTE, SHT_NOBITS = 1, 2, 3, 7, 8
SHF_ALLOC_EXECINSTR = 6
SHN_ABS = 0xFFF1


@dataclass(frozen=True)
class SegmentSpec:
    kind: int
    flags: int
    file_offset: int
    link_address: int
    file_size: int


@dataclass(frozen=True)
class SectionSpec:
    name: str
    kind: int
    content: bytes = b""
    flags: int = 0
    link_address: int = 0
    link: int = 0
    entry_size: int = 0
    size: int | None = None


@dataclass(frozen=True)
class SymbolSpec:
    name: str
    value: int
    size: int = 0
    kind: int = 2  # STT_FUNC
    binding: int = 1  # STB_GLOBAL
    section: int = 1


@dataclass
class ElfSpec:
    segments: list[SegmentSpec] = field(default_factory=list)
    sections: list[SectionSpec] = field(default_factory=list)
    machine: int = 62
    entry: int = 0


def build_elf(spec: ElfSpec) -> bytes:
    """Header, program headers, section contents, section headers; section 0 and .shstrtab are added."""
    sections = [SectionSpec("", 0), *spec.sections]
    names = b"\0" + b"".join(section.name.encode() + b"\0" for section in sections[1:]) + b".shstrtab\0"
    sections.append(SectionSpec(".shstrtab", SHT_STRTAB, names))
    body = bytearray()
    start = 64 + 56 * len(spec.segments)
    headers = b""
    name_at = 0
    for index, section in enumerate(sections):
        body += bytes(-(start + len(body)) % 8)
        place = (name_at, start + len(body)) if index else (0, 0)
        headers += _section_header(section, *place)
        body += section.content
        name_at += len(section.name) + 1
    body += bytes(-(start + len(body)) % 8)
    programs = b"".join(
        struct.pack("<IIQQQQQQ", s.kind, s.flags, s.file_offset, s.link_address, 0, s.file_size, s.file_size, 0x1000)
        for s in spec.segments
    )
    return _file_header(spec, start + len(body), len(sections)) + programs + bytes(body) + headers


def _section_header(section: SectionSpec, name_at: int, offset: int) -> bytes:
    """``Elf64_Shdr``."""
    size = len(section.content) if section.size is None else section.size
    place = (section.link_address, offset, size)
    return struct.pack("<IIQQQQIIQQ", name_at, section.kind, section.flags, *place, section.link, 0, 1, section.entry_size)


def _file_header(spec: ElfSpec, section_headers_at: int, section_count: int) -> bytes:
    """``Elf64_Ehdr`` of a shared object."""
    identity = b"\x7fELF\x02\x01\x01" + bytes(9)
    offsets = (spec.entry, 64, section_headers_at)
    tables = (56, len(spec.segments), 64, section_count, section_count - 1)
    return identity + struct.pack("<HHIQQQIHHHHHH", 3, spec.machine, 1, *offsets, 0, 64, *tables)


def symbol_sections(symbols: list[SymbolSpec], first_index: int) -> list[SectionSpec]:
    """.symtab and .strtab; ``first_index``: the section index that .symtab will have."""
    strings = bytearray(b"\0")
    records = bytes(24)
    for symbol in symbols:
        info = symbol.binding << 4 | symbol.kind
        records += struct.pack("<IBBHQQ", len(strings), info, 0, symbol.section, symbol.value, symbol.size)
        strings += symbol.name.encode() + b"\0"
    return [
        SectionSpec(".symtab", SHT_SYMTAB, records, link=first_index + 1, entry_size=24),
        SectionSpec(".strtab", SHT_STRTAB, bytes(strings)),
    ]


def note(name: bytes, kind: int, descriptor: bytes) -> bytes:
    padded_name = name + b"\0" + bytes(-(len(name) + 1) % 4)
    return struct.pack("<III", len(name) + 1, len(descriptor), kind) + padded_name + descriptor + bytes(-len(descriptor) % 4)
