"""Names of kernel code from the kernel's own ELF file, for recordings of a kernel that does not run here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from profiler.errors import FormatError
from profiler.model.arrays import UInt64Column
from symbolize.elf.image import ElfImage
from symbolize.elf.layout import SHT_SYMTAB
from symbolize.elf.symbol_records import symbol_records
from symbolize.elf.symbol_table import SymbolTable
from symbolize.image_file import open_image
from symbolize.search_paths import SearchPaths

_BASE_SYMBOL = "_text"


class VmlinuxSymbols:
    """Answers like ``KernelSymbols`` for the kernel proper.  ``moved_by``: runtime less link address (KASLR), modulo 2**64."""

    def __init__(self, table: SymbolTable, moved_by: int) -> None:
        self._table = table
        self._moved_by = np.uint64(moved_by)

    def names(self, addresses: UInt64Column) -> list[str]:
        """The symbol that covers each runtime address, "" where none does."""
        rows = self._table.lookup(addresses - self._moved_by).tolist()
        return [self._table.name(row) if row >= 0 else "" for row in rows]

    def modules(self, addresses: UInt64Column) -> list[str]:
        """None is known to belong to a module."""
        return [""] * len(addresses)

    def address(self, name: str) -> int | None:
        row = self._table.row_named(name)
        return (self._table.start(row) + int(self._moved_by)) % 2**64 if row >= 0 else None


def vmlinux_symbols(search: SearchPaths, build_id: bytes, release: str, text_address: int) -> VmlinuxSymbols | None:
    """Symbols of the kernel with ``build_id``; ``None`` when its file is not here.

    ``text_address``: where ``_text`` was in the recording; without it nothing tells how far the kernel was moved.
    """
    if not build_id or not text_address:
        return None
    for path in _paths(search, build_id, release):
        image, _ = open_image(path)
        if image is None or image.build_id != build_id:
            continue
        try:
            linked_at = _base_address(image)
            table = image.symbol_table()
        except FormatError:
            continue
        if linked_at is not None and len(table):
            return VmlinuxSymbols(table, (text_address - linked_at) % 2**64)
    return None


def _paths(search: SearchPaths, build_id: bytes, release: str) -> Iterator[Path]:
    yield from search.debug_files(build_id)
    yield from search.by_build_id(build_id)
    yield from (directory / "vmlinux" for directory in search.extra_directories)
    if not release or "/" in release:
        return
    for directory in search.extra_directories:
        yield directory / f"vmlinux-{release}"
    yield from search.in_trees(f"boot/vmlinux-{release}")
    yield from search.in_trees(f"lib/modules/{release}/vmlinux")
    yield search.on_system(f"/boot/vmlinux-{release}")
    yield search.on_system(f"/lib/modules/{release}/build/vmlinux")


def _base_address(image: ElfImage) -> int | None:
    """Link address of ``_text``, also where another symbol of its address is the one that is shown."""
    section = next((each for each in image.section_table if each.type == SHT_SYMTAB), None)
    if section is None:
        return None
    records, strings = symbol_records(image, section)
    place = bytes(strings).find(b"\0" + _BASE_SYMBOL.encode() + b"\0")
    rows = np.flatnonzero(records["st_name"] == place + 1).tolist() if place >= 0 else []
    return int(records["st_value"][rows[0]]) if rows else None
