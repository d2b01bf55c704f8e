"""Where the binaries and debug files of recorded DSOs are, and the symbols of the recorded kernel."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.errors import FormatError
from profiler.model.dso import UNREAD_BUILD, Dso, DsoKind
from profiler.model.quick_dataclass import dataclass
from profiler.model.symbols import NO_CAVEATS, FileCaveats
from symbolize.debug_files import DebugFiles, LinkedFiles, has_symbols
from symbolize.debuginfod import Debuginfod
from symbolize.elf.identity import is_build
from symbolize.elf.image import ElfImage, gnu_build_id, parse_image
from symbolize.image_file import open_image
from symbolize.kallsyms import KernelSymbols
from symbolize.kernel_cache import KernelSymbolCache, KernelSymbolsOnDemand, read_kallsyms
from symbolize.search_paths import SearchPaths as SearchPaths
from symbolize.vmlinux import VmlinuxSymbols, vmlinux_symbols

if TYPE_CHECKING:
    from symbolize.unwind.stored_rules import RuleStore

AnyKernelSymbols = KernelSymbolsOnDemand | KernelSymbols | VmlinuxSymbols


@dataclass(frozen=True, slots=True)
class LocatedBinary:
    """``image``: the binary that was recorded.  ``debug_image``: its separate debug file, if it has one and needs it.
    ``status``: "" = fine, else one line that says what is missing and why.  ``linked_files``: finds what these refer to."""

    image: ElfImage | None
    debug_image: ElfImage | None
    status: str
    caveats: FileCaveats = NO_CAVEATS
    linked_files: LinkedFiles | None = None

    @property
    def images(self) -> tuple[ElfImage, ...]:
        """What is there of the two, the debug file first."""
        return tuple(image for image in (self.debug_image, self.image) if image is not None)


class Locator:
    """Finds and opens binaries; every (path, build ID) is looked for once, until ``let_go`` forgets it.  Never raises for
    missing or foreign files.  ``locate`` and ``let_go`` may be called by several threads."""

    def __init__(
        self,
        search: SearchPaths | None = None,
        kernel_cache: KernelSymbolCache | None = None,
        unwind_rules: RuleStore | None = None,
    ) -> None:
        """``unwind_rules``: where the rules of these binaries are kept."""
        self.unwind_rules = unwind_rules
        self._search = SearchPaths() if search is None else search
        self._servers = Debuginfod(self._search.debuginfod_urls)
        self._debug_files = DebugFiles(self._search, self._servers)
        self._kernel_cache = kernel_cache
        self._located: dict[tuple[str, bytes, DsoKind], LocatedBinary] = {}
        self._lock = threading.Lock()  # of the order in ``_located``, never held while a file is looked for
        self._kernels: dict[tuple[bytes, str, int], AnyKernelSymbols | None] = {}

    def locate(self, dso: Dso) -> LocatedBinary:
        """The files of ``dso``.  A file counts only if it has the recorded build ID; where none was recorded any counts, with
        the caveat that it is not verified."""
        key = (dso.path, dso.build_id, dso.kind)
        with self._lock:
            found = self._located.get(key)
        if found is None:
            found = self._with_linked_files(self._find(dso))
        with self._lock:
            found = self._located.pop(key, found)  # another thread may have been faster
            self._located[key] = found  # behind all others
        return found

    def let_go(self, kept: int) -> None:
        """Forgets all binaries but the ``kept`` that were asked for last; what nobody else holds is closed.  For whoever goes
        on while programs come and go."""
        with self._lock:
            while len(self._located) > kept:
                del self._located[next(iter(self._located))]

    def image(self, dso: Dso) -> ElfImage | None:
        """The binary that was recorded, for unwinding; for the vDSO this process's own when it is the same or unknown."""
        return self.locate(dso).image

    def kernel_symbols(self, build_id: bytes, release: str, text_address: int) -> AnyKernelSymbols | None:
        """``running_kernel_symbols``, else ``vmlinux_symbols``; read once."""
        key = (build_id, release, text_address)
        if key not in self._kernels:
            running = running_kernel_symbols(build_id, release, text_address, self._kernel_cache)
            self._kernels[key] = running or vmlinux_symbols(self._search, build_id, release, text_address)
        return self._kernels[key]

    def _with_linked_files(self, found: LocatedBinary) -> LocatedBinary:
        return replace(found, linked_files=LinkedFiles(found.images, self._search, self._servers)) if found.images else found

    def _find(self, dso: Dso) -> LocatedBinary:
        if dso.kind == DsoKind.VDSO:
            return self._find_vdso(dso)
        if dso.kind != DsoKind.FILE:
            return LocatedBinary(None, None, f"{dso.name} is not a file")
        image, status = self._find_binary(dso)
        if image is None:
            debug_image = self._debug_files.by_build_id(dso.build_id) or self._debug_files.downloaded(dso.build_id)
            return LocatedBinary(None, debug_image, status)
        caveats = NO_CAVEATS if dso.build_id else FileCaveats(unverified=image.name, changed_ns=_changed_ns(Path(image.name)))
        if has_symbols(image) and image.has_debug_info():
            return LocatedBinary(image, None, "", caveats)
        debug_image, status = self._debug_files.of_binary(image)
        return LocatedBinary(image, debug_image, status, caveats)

    def _find_vdso(self, dso: Dso) -> LocatedBinary:
        own = own_vdso()
        if own is not None and dso.build_id in (b"", own.build_id):
            return LocatedBinary(own, None, "")
        for path in self._search.by_build_id(dso.build_id):
            image, _ = open_image(path)
            if image is not None and image.build_id == dso.build_id:
                return LocatedBinary(image, None, "")
        found = own.build_id.hex() if own is not None else "none"
        return LocatedBinary(None, None, f"[vdso]: build ID {dso.build_id.hex()} recorded, this kernel's is {found}")

    def _find_binary(self, dso: Dso) -> tuple[ElfImage | None, str]:
        """(the recorded binary, "") or (None, why not)."""
        if dso.build_id == UNREAD_BUILD:
            return None, f"{dso.path}: in another root directory than slotscope's, and could not be read there"
        reasons: list[str] = []
        for path in self._search.binaries(dso.path, dso.build_id):
            image, reason = open_image(path)
            if image is None:
                reasons += [reason] if reason else []
            elif not dso.build_id or is_build(image, dso.build_id):
                return image, ""
            else:
                found = image.build_id.hex() or "none"
                reasons.append(f"{path}: build ID {dso.build_id.hex()} recorded, {found} found")
        downloaded = self._servers.find(dso.build_id, "executable")
        if downloaded is not None:
            return downloaded, ""
        if reasons:
            return None, reasons[0]
        recorded = f" (build ID {dso.build_id.hex()})" if dso.build_id else ""
        return None, f"{dso.path}: no such file{recorded}"


def own_vdso() -> ElfImage | None:
    """The vDSO that the kernel mapped into this process; ``None`` when it cannot be read."""
    try:
        with open("/proc/self/maps", encoding="ascii", errors="replace") as maps:
            ranges = [line.split()[0] for line in maps if line.rstrip().endswith("[vdso]")]
        if not ranges:
            return None
        start, end = (int(part, 16) for part in ranges[0].split("-"))
        with open("/proc/self/mem", "rb", buffering=0) as memory:
            memory.seek(start)
            return parse_image(memory.read(end - start), "[vdso]")
    except (OSError, FormatError):
        return None


def running_kernel_symbols(
    build_id: bytes, release: str, text_address: int, cache: KernelSymbolCache | None = None
) -> KernelSymbolsOnDemand | KernelSymbols | None:
    """Code symbols of the running kernel if it is the recorded one; ``None`` otherwise and where kernel addresses are hidden.

    The same kernel is one with the recorded ``build_id``; where none was recorded, one with the same ``release`` (``uname
    -r``).  In both cases ``_text`` must lie at ``text_address`` when that is known (not 0): it differs after a reboot.
    """
    if build_id:
        if running_kernel_build_id() != build_id:
            return None
    elif not release or release != os.uname().release:
        return None
    symbols = _kernel_symbols(cache)
    if symbols is not None and text_address and symbols.address("_text") != text_address:
        return None
    return symbols


def _kernel_symbols(cache: KernelSymbolCache | None) -> KernelSymbolsOnDemand | KernelSymbols | None:
    kernel_proper = cache.load() if cache is not None else None
    if kernel_proper is not None:
        return KernelSymbolsOnDemand(kernel_proper)
    symbols = read_kallsyms()
    if symbols is not None and cache is not None:
        cache.store(symbols)
    return symbols


def running_kernel_build_id() -> bytes:
    """Build ID of the running kernel, empty when it cannot be read."""
    try:
        return gnu_build_id(memoryview(Path("/sys/kernel/notes").read_bytes()))
    except OSError:
        return b""


def _changed_ns(path: Path) -> int:
    """When the file's content was last changed, in ns since 1970; 0 = not known."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
