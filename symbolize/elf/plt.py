"""Names for the stubs of the procedure linkage table: ``name@plt``, as perf shows them.

A stub is recognised by its ``jmp *displacement(%rip)``; the word it jumps through is looked up in the relocations (System V
ABI x86-64, 5.2), so ``.plt``, ``.plt.sec`` (IBT) and ``.plt.got`` need no rules of their own.
"""

from __future__ import annotations

import numpy as np

from profiler.model.arrays import Int64Column
from symbolize.elf.layout import EM_X86_64, SHT_DYNSYM, SHT_NOBITS, SHT_RELA, SHT_SYMTAB, Section, SectionedFile
from symbolize.elf.symbol_records import string_at, symbol_records

_RELOCATION = np.dtype([("r_offset", "<u8"), ("r_type", "<u4"), ("r_sym", "<u4"), ("r_addend", "<i8")])
_R_X86_64_GLOB_DAT, _R_X86_64_JUMP_SLOT = 6, 7
_PLT_SECTIONS = (".plt", ".plt.sec", ".plt.got")
_ADDRESS_LIMIT = 2**62  # beyond are no programs, only damaged files
_LATEST_JUMP = 10  # endbr64 (4) + bnd (1) come before the jump at most; in a lazy header it stands at 6


def plt_symbols(image: SectionedFile) -> list[tuple[int, int, str]]:
    """(link address, size, ``name@plt``) of every stub, ascending by section; empty for other machines than x86-64 and for
    damaged tables."""
    if image.machine != EM_X86_64 or not any(name in image.sections for name in _PLT_SECTIONS):
        return []
    slots, names = _slot_names(image)
    if not len(slots):
        return []
    found = []
    for name in _PLT_SECTIONS:
        section = image.sections.get(name)
        if section is None or section.type == SHT_NOBITS or section.link_address >= _ADDRESS_LIMIT:
            continue
        if section.file_offset + section.size > len(image.data):
            continue
        stub_bytes = section.entry_size if section.entry_size in (8, 16) else 16
        address, target = _jump_targets(image, section, stub_bytes)
        row = np.minimum(np.searchsorted(slots, target), len(slots) - 1)
        known = slots[row] == target
        pairs = zip(address[known].tolist(), row[known].tolist(), strict=True)
        found += [(stub, stub_bytes, names[slot] + "@plt") for stub, slot in pairs if names[slot]]
    return found


def _jump_targets(image: SectionedFile, section: Section, stub_bytes: int) -> tuple[Int64Column, Int64Column]:
    """(address of the stub, address of the word it jumps through) for every stub of one section."""
    count = section.size // stub_bytes
    code = np.frombuffer(image.data, np.uint8, count * stub_bytes, section.file_offset).reshape(count, stub_bytes)
    jump_at = np.full(count, -1, np.int64)
    for position in range(min(_LATEST_JUMP, stub_bytes - 6), -1, -1):
        jump_at[(code[:, position] == 0xFF) & (code[:, position + 1] == 0x25)] = position
    stubs = np.flatnonzero(jump_at >= 0)
    at = jump_at[stubs]
    displacement = np.zeros(len(stubs), np.uint32)
    for byte in range(4):
        displacement |= code[stubs, at + 2 + byte].astype(np.uint32) << np.uint32(8 * byte)
    address = section.link_address + stubs * stub_bytes
    return address, address + at + 6 + displacement.astype(np.int32)


def _slot_names(image: SectionedFile) -> tuple[Int64Column, list[str]]:
    """Addresses of relocated words, ascending, and the name of the symbol each one is bound to ("" = none)."""
    offsets: list[int] = []
    names: list[str] = []
    for section in image.section_table:
        if section.type != SHT_RELA or section.link >= len(image.section_table):
            continue
        symbol_section = image.section_table[section.link]
        count = section.size // _RELOCATION.itemsize
        if symbol_section.type not in (SHT_SYMTAB, SHT_DYNSYM) or section.file_offset + count * _RELOCATION.itemsize > len(
            image.data
        ):
            continue
        table = np.frombuffer(image.data, _RELOCATION, count, section.file_offset)
        table = table[(table["r_type"] == _R_X86_64_JUMP_SLOT) | (table["r_type"] == _R_X86_64_GLOB_DAT)]
        records, strings = symbol_records(image, symbol_section)
        table = table[table["r_sym"] < len(records)]
        offsets += table["r_offset"].astype(np.int64).tolist()
        names += [string_at(strings, int(records["st_name"][row])).partition("@")[0] for row in table["r_sym"].tolist()]
    order = np.argsort(np.array(offsets, np.int64), kind="stable")
    return np.array(offsets, np.int64)[order], [names[row] for row in order.tolist()]
