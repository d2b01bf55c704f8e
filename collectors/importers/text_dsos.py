"""DSO names of text, as perf prints them, into rows of a DSO table."""

from __future__ import annotations

import re

from collectors.ingest.dso_table import GUEST_NAME, KERNEL_NAME, UNKNOWN_NAME, file_kind, is_kernel_text, module_name
from profiler.model.dso import Dso, DsoKind
from profiler.model.frame_table import CpuMode

_DELETED = " (deleted)"
_KERNEL_FILE = re.compile(r"(?:^|/)vmlinux[^/]*$|^\[kernel(?:\.\w+)?\](?:_\w+)?$|^\[kernel\.kallsyms\]")
_MODULE_FILE = re.compile(r"\.ko(?:\.\w+)?$")
_GUEST = re.compile(r"^\[guest\.")
# What perf calls the code that a compiler in the process made: its map's file, or the memory's owner.
_GENERATED = re.compile(r"(?:^|/)(?:perf|jitted)-\d+(?:-\d+)?\.(?:map|so)$|^\[JIT\] tid \d+$")
_GENERATED_NAME = "//anon"
_LOWEST_KERNEL_ADDRESS = 0xFFFF_8000_0000_0000
_NO_ADDRESS = 0xFFFF_FFFF_FFFF_FFFF


class TextDsos:
    """Rows for DSO names.  A file whose frame has no name in the text gets a row of unknown kind: the addresses that are
    printed are file offsets, link addresses or runtime addresses, depending on perf's version, so none may be looked up."""

    def __init__(self) -> None:
        self.rows: list[Dso] = []
        self.modes: list[CpuMode] = []
        self._row_of: dict[tuple[Dso, CpuMode], int] = {}
        self._row_of_text: dict[tuple[str, bool, bool], int] = {}

    def row(self, printed: str, address: int, is_named: bool) -> int:
        """Row of the DSO that is printed as ``printed`` ("" = not printed) for a frame at ``address``."""
        key = (printed, _LOWEST_KERNEL_ADDRESS <= address < _NO_ADDRESS, is_named)
        row = self._row_of_text.get(key)
        if row is None:
            row = self._row_of_text[key] = self._new_row(*text_dso(printed, address), is_named)
        return row

    def source_row(self, path: str) -> int:
        """Row of a source file whose code is interpreted."""
        return self._row(Dso(path, b"", DsoKind.SOURCE), CpuMode.USER)

    def _new_row(self, dso: Dso, mode: CpuMode, is_named: bool) -> int:
        if not is_named and dso.kind in (DsoKind.FILE, DsoKind.VDSO):
            dso = Dso(dso.path, b"", DsoKind.UNKNOWN)
        return self._row(dso, mode)

    def _row(self, dso: Dso, mode: CpuMode) -> int:
        row = self._row_of.setdefault((dso, mode), len(self.rows))
        if row == len(self.rows):
            self.rows.append(dso)
            self.modes.append(mode)
        return row


def text_dso(printed: str, address: int) -> tuple[Dso, CpuMode]:
    """(DSO, who ran the code) of a printed DSO name and address."""
    path = printed.removesuffix(_DELETED)
    is_high = _LOWEST_KERNEL_ADDRESS <= address < _NO_ADDRESS
    if _GUEST.match(path):
        return Dso(GUEST_NAME, b"", DsoKind.UNKNOWN), CpuMode.GUEST
    if is_kernel_text(path) or _KERNEL_FILE.search(path):
        return Dso(KERNEL_NAME, b"", DsoKind.KERNEL), CpuMode.KERNEL
    if path in ("", UNKNOWN_NAME):
        if is_high:
            return Dso(KERNEL_NAME, b"", DsoKind.KERNEL), CpuMode.KERNEL
        return Dso(UNKNOWN_NAME, b"", DsoKind.UNKNOWN), CpuMode.USER
    if is_high or _MODULE_FILE.search(path):
        return Dso(module_name(path), b"", DsoKind.MODULE), CpuMode.KERNEL
    if is_generated(path):
        return Dso(_GENERATED_NAME, b"", DsoKind.ANONYMOUS), CpuMode.USER
    return Dso(path, b"", file_kind(path)), CpuMode.USER


def is_generated(path: str) -> bool:
    """Whether perf printed the map of a compiler in the process, or the process, in place of a file."""
    return _GENERATED.search(path) is not None
