"""Symbols of the running kernel, kept for as long as it runs: the kernel writes /proc/kallsyms anew for every reader, which
takes longer than a small report.

Kept are the symbols of the kernel proper, which do not change before the next boot; those of modules and of BPF programs come
and go.  A file is named after the boot, so one that a crash of the host left half written is never read.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import re
from pathlib import Path

import numpy as np

from profiler.model.arrays import UInt64Column
from symbolize.kallsyms import KernelSymbols, decode_kernel_symbols, parse_kallsyms

_X86_KERNEL_CODE = 2**64 - 2**31
_BOOT_ID = re.compile(r"[0-9a-f-]{36}")


class KernelSymbolCache:
    """One file in ``directory``, made when it is stored.  No method raises for I/O errors, as in ``SymbolCache``."""

    def __init__(self, directory: Path, boot_id: str | None = None) -> None:
        """``boot_id``: of the running kernel, read from it when not given."""
        self._directory = directory / "kernel"
        self._boot_id = running_boot_id() if boot_id is None else boot_id

    def load(self) -> KernelSymbols | None:
        """The symbols of the kernel proper as stored since the last boot."""
        if not self._boot_id:
            return None
        try:
            with self._path().open("rb") as stream:
                data = mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ)
        except (OSError, ValueError):  # an empty file cannot be mapped
            return None
        return decode_kernel_symbols(data)

    def store(self, symbols: KernelSymbols) -> bool:
        """Whether the symbols are stored now, in place of those of earlier boots; readable by this user alone, since the kernel
        may hide its addresses from others."""
        pieces = symbols.encode_kernel_proper()
        if not self._boot_id or pieces is None:
            return False
        temporary = self._path().with_suffix(f".{os.urandom(8).hex()}.tmp")
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            outdated = list(self._directory.iterdir())
            with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
                stream.writelines(pieces)
            os.replace(temporary, self._path())
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            return False
        for path in outdated:
            if path != self._path():
                with contextlib.suppress(OSError):
                    path.unlink()
        return True

    def _path(self) -> Path:
        return self._directory / f"{self._boot_id}.symbols"


class KernelSymbolsOnDemand:
    """Answers like ``KernelSymbols``; /proc/kallsyms is read only for addresses outside of the kernel proper."""

    def __init__(self, kernel_proper: KernelSymbols) -> None:
        self._kernel_proper = kernel_proper
        self._all: KernelSymbols | None = None

    def names(self, addresses: UInt64Column) -> list[str]:
        return self._symbols_for(addresses).names(addresses)

    def modules(self, addresses: UInt64Column) -> list[str]:
        return self._symbols_for(addresses).modules(addresses)

    def address(self, name: str) -> int | None:
        return self._kernel_proper.address(name)

    def _symbols_for(self, addresses: UInt64Column) -> KernelSymbols:
        if self._all is None and not self._kernel_proper.spans(self._possible(addresses)):
            self._all = read_kallsyms()
        return self._all or self._kernel_proper

    def _possible(self, addresses: UInt64Column) -> UInt64Column:
        """Without those at which no code of an x86-64 kernel, of its modules or of BPF programs can lie: below the last 2 GiB
        (Documentation/arch/x86/x86_64/mm.rst); chains of frame pointers that are broken end in such numbers."""
        is_x86 = self._kernel_proper.first_address >= _X86_KERNEL_CODE
        return addresses[addresses >= np.uint64(_X86_KERNEL_CODE)] if is_x86 else addresses


def read_kallsyms() -> KernelSymbols | None:
    """What the kernel says now; ``None`` where its addresses are hidden."""
    try:
        return parse_kallsyms(Path("/proc/kallsyms").read_bytes())
    except OSError:
        return None


def running_boot_id() -> str:
    """A random number of this boot, "" when it cannot be read."""
    try:
        text = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
    return text if _BOOT_ID.fullmatch(text) else ""
