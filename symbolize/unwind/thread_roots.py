"""Functions in which threads begin, recognised by their code in libraries without a symbol table.

Chains of frame pointers end in the C library, which keeps none, at the caller of `main` or of a thread's first function.
Distributions strip those callers' names.  What is left is how they are reached:

* `__libc_start_main` calls the function that calls `main`;
* `pthread_create` (or a local function that it calls) takes the address of the function that a new thread runs, and so does
  `std::thread::_M_start_thread`.

Source: glibc 2.34 and later, `sysdeps/nptl/libc_start_call_main.h` and `nptl/pthread_create.c`; libstdc++
`src/c++11/thread.cc`.  Instruction encodings: Intel SDM volume 2 (CALL rel32, JMP rel32, LEA r64, [RIP + disp32]).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from profiler.errors import FormatError
from profiler.model.arrays import Int64Column, UInt8Column, is_among
from profiler.model.quick_dataclass import dataclass
from symbolize.elf.image import ElfImage
from symbolize.elf.layout import EM_X86_64
from symbolize.elf.symbol_records import SYMBOL_RECORD, SymbolRecords, symbol_records
from symbolize.unwind.name_beginnings import LONGEST, rows_beginning

_CALLS_THE_CALLER_OF_MAIN = (b"__libc_start_main",)
_STARTS_THREADS = (b"pthread_create", b"_ZNSt6thread15_M_start_thread")
_SHN_UNDEF = 0
_MAX_BODY_BYTES = 1 << 16
_CALL, _JUMP, _LEA = 0xE8, 0xE9, 0x8D


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Code:
    """``starts``: link addresses of all functions that have call frame information, ascending."""

    image: ElfImage
    starts: Int64Column

    def called_by(self, start: int) -> set[int]:
        """Functions that the function at ``start`` calls or jumps to."""
        body = self._body(start)
        return self._targets(start, body, np.flatnonzero((body == _CALL) | (body == _JUMP)), 1)

    def addresses_taken_by(self, start: int) -> set[int]:
        """Functions whose address the function at ``start`` computes."""
        body = self._body(start)
        relative_to_next = body[1:] & 0xC7 == 0x05
        return self._targets(start, body, np.flatnonzero((body[:-1] == _LEA) & relative_to_next), 2)

    def _body(self, start: int) -> UInt8Column:
        """The bytes from ``start`` up to the next function."""
        offset = int(self.image.file_offsets(np.array([start], np.uint64))[0])
        following = self.starts[np.searchsorted(self.starts, start, "right") :]
        size = min(int(following[0]) - start, _MAX_BODY_BYTES) if len(following) else _MAX_BODY_BYTES
        return np.frombuffer(self.image.data[offset : offset + size], np.uint8)

    def _targets(self, start: int, body: UInt8Column, at: Int64Column, skip: int) -> set[int]:
        at = at[at + skip + 4 <= len(body)]
        distance = body[(at + skip)[:, None] + np.arange(4)].copy().view("<i4")[:, 0].astype(np.int64)
        targets = start + at + skip + 4 + distance
        return set(targets[is_among(targets, self.starts)].tolist())


def thread_root_functions(image: ElfImage, function_starts: Callable[[], Int64Column]) -> Int64Column:
    """Link addresses, ascending, of the functions in which threads begin; x86-64 only, else none.

    ``function_starts`` gives the link addresses of all functions, ascending; it is asked only where a function is named.
    """
    named = _exported(image, _CALLS_THE_CALLER_OF_MAIN + _STARTS_THREADS) if image.machine == EM_X86_64 else {}
    if not named:
        return np.zeros(0, np.int64)
    code = _Code(image, function_starts())
    roots: set[int] = set()
    exported = _exported_addresses(image)
    for name, addresses in named.items():
        for address in addresses:
            if name in _CALLS_THE_CALLER_OF_MAIN:
                roots |= code.called_by(address) - exported
            else:
                helpers = code.called_by(address) - exported
                roots |= set().union(*(code.addresses_taken_by(starter) for starter in (address, *helpers)))
    return np.array(sorted(roots), np.int64)


def _exported(image: ElfImage, prefixes: tuple[bytes, ...]) -> dict[bytes, list[int]]:
    """Addresses of exported functions by the prefix that their name begins with."""
    records, strings = _dynamic_symbols(image)
    rows = rows_beginning(records, strings, [prefix[:LONGEST] for prefix in prefixes])
    rows = rows[(records["st_shndx"] != _SHN_UNDEF)[rows]]
    found: dict[bytes, set[int]] = {}
    for offset, address in zip(records["st_name"][rows].tolist(), records["st_value"][rows].tolist(), strict=True):
        for prefix in prefixes:
            # A name that is the end of another one is not meant.
            if bytes(strings[max(offset - 1, 0) : offset + len(prefix)]) == b"\0" + prefix:
                found.setdefault(prefix, set()).add(address)
    return {prefix: sorted(found[prefix]) for prefix in prefixes if prefix in found}


def _exported_addresses(image: ElfImage) -> set[int]:
    return set(_dynamic_symbols(image)[0]["st_value"].tolist())


def _dynamic_symbols(image: ElfImage) -> tuple[SymbolRecords, memoryview]:
    section = image.sections.get(".dynsym")
    try:
        if section is not None:
            return symbol_records(image, section)
    except FormatError:
        pass  # a damaged table names nothing
    return np.zeros(0, SYMBOL_RECORD), memoryview(b"")
