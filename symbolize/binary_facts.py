"""What a binary tells about how it was built: facts that decide how it can be profiled and compared."""

from __future__ import annotations

import re
from collections import Counter
from enum import StrEnum

from profiler.errors import FormatError
from profiler.model.quick_dataclass import dataclass
from symbolize.dwarf.unit_facts import UnitFacts, unit_facts
from symbolize.elf.dynamic_section import dynamic_needs
from symbolize.elf.frame_pointers import keeps_frame_pointers
from symbolize.elf.image import ElfImage

_MACHINES = {
    3: "i386",
    8: "MIPS",
    20: "PowerPC",
    21: "PowerPC64",
    22: "S/390",
    40: "ARM",
    62: "x86-64",
    183: "AArch64",
    243: "RISC-V",
    258: "LoongArch",
}
_SAMPLED_NAMES = 4000
_MIXED_SHARE = 0.02
_PRODUCER_LIMIT = 4

_ALLOCATOR_SYMBOLS = {
    "jemalloc": (b"_rjem_malloc", b"_rjem_mallocx", b"_rjem_mallctl", b"je_malloc", b"je_mallocx", b"mallctl"),
    "mimalloc": (b"mi_malloc", b"mi_malloc_aligned", b"mi_heap_malloc"),
    "tcmalloc": (b"tc_malloc", b"tc_new", b"TCMallocInternalMalloc"),
}
_ALLOCATOR_LIBRARIES = {"libjemalloc": "jemalloc", "libmimalloc": "mimalloc", "libtcmalloc": "tcmalloc"}
_RUST_LEGACY = re.compile(r"^_ZN.*17h[0-9a-f]{16}E")
_RUST_V0 = re.compile(r"^_R[0-9]*[NCMXYIB]")
# Parts of the standard libraries that are linked in as they were shipped say nothing of the program's own build.
_SHIPPED_DIRECTORY = re.compile(r"^/rustc/|^/rust/deps/|/(?:glibc|gcc)[-/][^/]*/|/build/(?:glibc|gcc)|^\.\./sysdeps/")


class DebugDetail(StrEnum):
    """FULL: -g.  NAMES: lines and qualified names without types (``debug = 1`` of rustc).  LINE_TABLES: bare names (-g1,
    ``line-tables-only``).  SPLIT: in .dwo files.  DAMAGED: there is some, of which nothing can be read."""

    FULL = "full"
    NAMES = "names"
    LINE_TABLES = "line-tables"
    SPLIT = "split"
    DAMAGED = "damaged"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class BinaryFacts:
    """The values are those of ``profiler.model.run.ProgramFacts``; ``producer``: the distinct producers, joined by
    "; "."""

    keeps_frame_pointers: bool
    allocator: str
    mangling: str
    debug_info: str
    producer: str


def binary_facts(image: ElfImage) -> BinaryFacts:
    """Facts of ``image``.  What is damaged counts as absent."""
    units = [unit for unit in unit_facts(image) if not _SHIPPED_DIRECTORY.search(f"{unit.directory}/")]
    return BinaryFacts(
        keeps_frame_pointers=keeps_frame_pointers(image),
        allocator=allocator(image, dynamic_needs(image).needed),
        mangling=mangling(image),
        debug_info=_debug_info(units),
        producer=_producer(image, units),
    )


def debug_detail(image: ElfImage) -> DebugDetail:
    """What the debug information in ``image`` itself describes, by most of the program's own units."""
    readable = list(unit_facts(image))
    if not readable and image.has_debug_info():
        return DebugDetail.DAMAGED
    units = [unit for unit in readable if not _SHIPPED_DIRECTORY.search(f"{unit.directory}/")]
    if 2 * sum(unit.is_split for unit in units) > len(units):
        return DebugDetail.SPLIT
    if not units or _debug_info(units) != "full":
        return DebugDetail.LINE_TABLES if units else DebugDetail.NONE
    return DebugDetail.FULL if 2 * sum(unit.has_types for unit in units) > len(units) else DebugDetail.NAMES


def machine_name(number: int) -> str:
    """Of an ``e_machine`` (elf.h): "x86-64"."""
    return _MACHINES.get(number, f"machine {number}")


def allocator(image: ElfImage, needed: tuple[str, ...]) -> str:
    """By an allocator's functions in the symbol names or its library among those needed; "system" otherwise."""
    names = _symbol_strings(image)
    for allocator_name, symbols in _ALLOCATOR_SYMBOLS.items():
        if any(b"\0" + symbol + b"\0" in names for symbol in symbols):
            return allocator_name
    for library in needed:
        for prefix, allocator_name in _ALLOCATOR_LIBRARIES.items():
            if library.startswith(prefix):
                return allocator_name
    return "system"


def mangling(image: ElfImage) -> str:
    """The scheme of the mangled names: "legacy" or "v0" (Rust), "itanium" (C++), "none", or "mixed" where a second scheme has
    2 % of them."""
    try:
        table = image.symbol_table()
    except FormatError:
        return "none"
    step = max(1, len(table) // _SAMPLED_NAMES)
    counts = Counter(_scheme(table.name(row)) for row in range(0, len(table), step))
    del counts["none"]
    total = sum(counts.values())
    schemes = [scheme for scheme, count in counts.most_common() if count >= _MIXED_SHARE * total]
    if not schemes:
        return "none"
    return schemes[0] if len(schemes) == 1 else "mixed"


def _scheme(name: str) -> str:
    if _RUST_V0.match(name):
        return "v0"
    if _RUST_LEGACY.match(name):
        return "legacy"
    return "itanium" if name.startswith("_Z") else "none"


def _symbol_strings(image: ElfImage) -> bytes:
    contents = [b""]
    for name in (".strtab", ".dynstr"):
        try:
            contents.append(bytes(image.section_bytes(name) or b""))
        except FormatError:
            continue
    return b"\0".join(contents)


def _debug_info(units: list[UnitFacts]) -> str:
    """By the kind that most of the program's own compilation units have."""
    if not units:
        return "none"
    full = sum(unit.is_full for unit in units)
    return "full" if 2 * full >= len(units) else "line-tables"


def _producer(image: ElfImage, units: list[UnitFacts]) -> str:
    try:
        comment = bytes(image.section_bytes(".comment") or b"")
    except FormatError:
        comment = b""
    texts = [part.decode("utf-8", "backslashreplace").strip() for part in comment.split(b"\0")]
    texts += [producer for producer, _ in Counter(unit.producer for unit in units).most_common(_PRODUCER_LIMIT)]
    return "; ".join(dict.fromkeys(text for text in texts if text))
