"""Where the binaries and debug files of recorded DSOs are; all file access of symbolization."""

from __future__ import annotations

import mmap
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from profiler.errors import FormatError
from profiler.model.dso import Dso, DsoKind
from profiler.model.symbols import NO_CAVEATS, FileCaveats
from symbolize.elf.image import ElfImage, gnu_build_id, parse_image
from symbolize.kallsyms import KernelSymbols
from symbolize.kernel_cache import KernelSymbolCache, KernelSymbolsOnDemand, read_kallsyms

_MAPPED_FROM_BYTES = 1 << 18  # smaller files are read: a mapping would hold a descriptor for each


@dataclass(frozen=True, slots=True)
class SearchPaths:
    """``debug_directories``: trees laid out like /usr/lib/debug.  ``extra_directories``: searched first; by ``.build-id``, by
    the recorded path below them, and by base name.  ``sysroot``: put before recorded paths; the path itself is not tried then.
    """

    debug_directories: tuple[Path, ...] = (Path("/usr/lib/debug"),)
    extra_directories: tuple[Path, ...] = ()
    sysroot: Path | None = None


@dataclass(frozen=True, slots=True)
class LocatedBinary:
    """``image``: the binary that was recorded.  ``debug_image``: its separate debug file, if it has one and needs it.
    ``status``: "" = fine, else one line that says what is missing and why."""

    image: ElfImage | None
    debug_image: ElfImage | None
    status: str
    caveats: FileCaveats = NO_CAVEATS


class Locator:
    """Finds and opens binaries; every (path, build ID) is looked for once.  Never raises for missing or foreign files."""

    def __init__(self, search: SearchPaths | None = None, kernel_cache: KernelSymbolCache | None = None) -> None:
        self._search = SearchPaths() if search is None else search
        self._kernel_cache = kernel_cache
        self._located: dict[tuple[str, bytes, DsoKind], LocatedBinary] = {}
        self._kernels: dict[tuple[bytes, str, int], KernelSymbolsOnDemand | KernelSymbols | None] = {}

    def locate(self, dso: Dso) -> LocatedBinary:
        """The files of ``dso``.  A file counts only if it has the recorded build ID; where none was recorded any counts, with
        the caveat that it is not verified."""
        key = (dso.path, dso.build_id, dso.kind)
        if key not in self._located:
            self._located[key] = self._find(dso)
        return self._located[key]

    def image(self, dso: Dso) -> ElfImage | None:
        """The binary that was recorded, for unwinding; for the vDSO this process's own when it is the same or unknown."""
        return self.locate(dso).image

    def kernel_symbols(self, build_id: bytes, release: str, text_address: int) -> KernelSymbolsOnDemand | KernelSymbols | None:
        """``running_kernel_symbols``, read once."""
        key = (build_id, release, text_address)
        if key not in self._kernels:
            self._kernels[key] = running_kernel_symbols(build_id, release, text_address, self._kernel_cache)
        return self._kernels[key]

    def _find(self, dso: Dso) -> LocatedBinary:
        if dso.kind == DsoKind.VDSO:
            return self._find_vdso(dso)
        if dso.kind != DsoKind.FILE:
            return LocatedBinary(None, None, f"{dso.name} is not a file")
        image, status = self._find_binary(dso)
        if image is None:
            return LocatedBinary(None, self._debug_file_by_build_id(dso.build_id), status)
        caveats = NO_CAVEATS if dso.build_id else FileCaveats(unverified=image.name, changed_ns=_changed_ns(Path(image.name)))
        if _has_symbols(image) and image.has_debug_info():
            return LocatedBinary(image, None, "", caveats)
        debug_image, status = self._find_debug_file(image)
        return LocatedBinary(image, debug_image, status, caveats)

    def _find_vdso(self, dso: Dso) -> LocatedBinary:
        own = own_vdso()
        if own is not None and dso.build_id in (b"", own.build_id):
            return LocatedBinary(own, None, "")
        for path in self._build_id_paths(dso.build_id):
            image, _ = _open(path)
            if image is not None and image.build_id == dso.build_id:
                return LocatedBinary(image, None, "")
        found = own.build_id.hex() if own is not None else "none"
        return LocatedBinary(None, None, f"[vdso]: build ID {dso.build_id.hex()} recorded, this kernel's is {found}")

    def _find_binary(self, dso: Dso) -> tuple[ElfImage | None, str]:
        """(the recorded binary, "") or (None, why not)."""
        reasons: list[str] = []
        for path in self._binary_paths(dso):
            image, reason = _open(path)
            if image is None:
                reasons += [reason] if reason else []
            elif dso.build_id in (b"", image.build_id):
                return image, ""
            else:
                found = image.build_id.hex() or "none"
                reasons.append(f"{path}: build ID {dso.build_id.hex()} recorded, {found} found")
        if reasons:
            return None, reasons[0]
        recorded = f" (build ID {dso.build_id.hex()})" if dso.build_id else ""
        return None, f"{dso.path}: no such file{recorded}"

    def _binary_paths(self, dso: Dso) -> Iterator[Path]:
        relative = dso.path.lstrip("/")
        for directory in self._search.extra_directories:
            yield directory / relative
            yield directory / Path(relative).name
        yield self._search.sysroot / relative if self._search.sysroot is not None else Path(dso.path)
        yield from self._build_id_paths(dso.build_id)

    def _build_id_paths(self, build_id: bytes, suffix: str = "") -> Iterator[Path]:
        if len(build_id) < 2:
            return
        name = build_id.hex()
        for directory in self._search.extra_directories + self._search.debug_directories:
            yield directory / ".build-id" / name[:2] / (name[2:] + suffix)
        if not suffix:
            home = os.environ.get("HOME")
            if home:  # perf's own cache
                yield Path(home) / ".debug" / ".build-id" / name[:2] / name[2:] / "elf"

    def _debug_file_by_build_id(self, build_id: bytes) -> ElfImage | None:
        for path in self._build_id_paths(build_id, ".debug"):
            image, _ = _open(path)
            if image is not None and image.build_id == build_id:
                return image
        return None

    def _find_debug_file(self, image: ElfImage) -> tuple[ElfImage | None, str]:
        """(debug file of a binary that lacks symbols or debug information, status)."""
        found = self._debug_file_by_build_id(image.build_id)
        if found is not None:
            return found, ""
        refused = ""
        link = _debug_link(image)
        if link is not None:
            found, refused = self._follow_debug_link(image, *link)
            if found is not None:
                return found, ""
        if _has_symbols(image):
            return None, refused
        missing = f"{image.name}: stripped, no debug file for build ID {image.build_id.hex() or 'none'}"
        return None, refused or missing

    def _follow_debug_link(self, image: ElfImage, name: str, checksum: int) -> tuple[ElfImage | None, str]:
        """The file that .gnu_debuglink names: beside the binary, in ``.debug`` below it, in the debug directories."""
        refused = ""
        directory = Path(image.name).resolve().parent
        below = str(directory).lstrip("/")
        roots = self._search.extra_directories + self._search.debug_directories
        candidates = [directory / name, directory / ".debug" / name, *(root / below / name for root in roots)]
        candidates += [extra / name for extra in self._search.extra_directories]
        for path in candidates:
            if _is_same_file(path, Path(image.name)):
                continue
            found, _ = _open(path)
            if found is None:
                continue
            if found.build_id and image.build_id and found.build_id != image.build_id:
                refused = refused or f"{path}: build ID {found.build_id.hex()}, the binary's is {image.build_id.hex()}"
            elif zlib.crc32(found.data) != checksum:
                refused = refused or f"{path}: checksum is not the one in {image.name}'s .gnu_debuglink"
            else:
                return found, ""
        return None, refused


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


def _open(path: Path) -> tuple[ElfImage | None, str]:
    """(image, "") or (None, reason); the reason is empty when there simply is no such file."""
    try:
        if not path.is_file():
            return None, ""
        with path.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            if size >= _MAPPED_FROM_BYTES:
                return parse_image(mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ), str(path)), ""
            return parse_image(stream.read(), str(path)), ""
    except OSError as error:
        return None, f"{path}: {error.strerror}"
    except FormatError as error:
        return None, str(error)


def _changed_ns(path: Path) -> int:
    """When the file's content was last changed, in ns since 1970; 0 = not known."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _has_symbols(image: ElfImage) -> bool:
    return image.section_is_stored(".symtab")


def _debug_link(image: ElfImage) -> tuple[str, int] | None:
    """(file name, CRC-32 of that file) from .gnu_debuglink."""
    try:
        data = image.section_bytes(".gnu_debuglink")
    except FormatError:
        return None
    if data is None or len(data) < 8:
        return None
    name = bytes(data[:-4]).partition(b"\0")[0].decode("utf-8", "surrogateescape")
    if not name or "/" in name:
        return None
    return name, int.from_bytes(data[-4:], "little")


def _is_same_file(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:
        return False
