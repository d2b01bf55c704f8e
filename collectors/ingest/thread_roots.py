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
from dataclasses import dataclass

import numpy as np

from profiler.errors import FormatError
from profiler.model.arrays import BoolColumn, Int32Column, Int64Column, UInt64Column, distinct
from symbolize.elf.call_frame_index import call_frame_indexes
from symbolize.elf.image import ElfImage
from symbolize.elf.symbol_records import SYMBOL_RECORD, SymbolRecords, symbol_records

_EM_X86_64 = 62
_CALLS_THE_CALLER_OF_MAIN = (b"__libc_start_main",)
_STARTS_THREADS = (b"pthread_create", b"_ZNSt6thread15_M_start_thread")
_MAX_BODY_BYTES = 1 << 16
_CALL, _JUMP, _LEA = 0xE8, 0xE9, 0x8D


@dataclass(frozen=True, slots=True)
class _Code:
    """``starts``: link addresses of all functions that have call frame information, ascending."""

    image: ElfImage
    starts: Int64Column

    def function_at(self, link_addresses: Int64Column) -> Int64Column:
        """Start of the function that holds each address, -1 before the first."""
        rows = np.searchsorted(self.starts, link_addresses, "right") - 1
        return np.where(rows >= 0, self.starts[np.maximum(rows, 0)], -1)

    def end_of(self, start: int) -> int:
        row = int(np.searchsorted(self.starts, start, "right"))
        return min(int(self.starts[row]) if row < len(self.starts) else start + _MAX_BODY_BYTES, start + _MAX_BODY_BYTES)

    def called_by(self, start: int) -> set[int]:
        """Functions that the function at ``start`` calls or jumps to."""
        body = self._body(start)
        return self._targets(start, body, np.flatnonzero((body == _CALL) | (body == _JUMP)), 1)

    def addresses_taken_by(self, start: int) -> set[int]:
        """Functions whose address the function at ``start`` computes."""
        body = self._body(start)
        relative_to_next = body[1:] & 0xC7 == 0x05
        return self._targets(start, body, np.flatnonzero((body[:-1] == _LEA) & relative_to_next), 2)

    def _body(self, start: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        offset = int(self.image.file_offsets(np.array([start], np.uint64))[0])
        return np.frombuffer(self.image.data[offset : offset + self.end_of(start) - start], np.uint8)

    def _targets(self, start: int, body: np.ndarray[tuple[int], np.dtype[np.uint8]], at: Int64Column, skip: int) -> set[int]:
        at = at[at + skip + 4 <= len(body)]
        distance = body[(at + skip)[:, None] + np.arange(4)].copy().view("<i4")[:, 0].astype(np.int64)
        targets = start + at + skip + 4 + distance
        return set(targets[np.isin(targets, self.starts)].tolist())


def thread_root_functions(image: ElfImage) -> Int64Column:
    """Start addresses (link addresses, ascending) of the functions in which threads begin; x86-64 only, else none."""
    named = _exported(image, _CALLS_THE_CALLER_OF_MAIN + _STARTS_THREADS)
    if image.machine != _EM_X86_64 or not named:
        return np.zeros(0, np.int64)
    index = next((built for build in call_frame_indexes(image) if (built := build()) is not None), None)
    if index is None:
        return np.zeros(0, np.int64)
    code = _Code(image, index.starts)
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
    text, found = bytes(strings), {}
    for prefix in prefixes:
        at = text.find(b"\0" + prefix) + 1
        is_named = (records["st_name"] == at) & (records["st_value"] != 0)
        if at and is_named.any():
            found[prefix] = [int(address) for address in distinct(records["st_value"][is_named])]
    return found


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


class ThreadRoots:
    """``images``: the ELF image of a DSO row, ``None`` when there is none."""

    def __init__(self, images: Callable[[int], ElfImage | None]) -> None:
        self._images = images

    def contain(self, dso: Int32Column, lookup_offset: UInt64Column) -> BoolColumn:
        """Whether each place lies in a function in which threads begin."""
        result = np.zeros(len(dso), np.bool_)
        for row in distinct(dso).tolist():
            image = self._images(row)
            roots = thread_root_functions(image) if image is not None else np.zeros(0, np.int64)
            if image is None or not len(roots):
                continue
            index = next(built for build in call_frame_indexes(image) if (built := build()) is not None)
            chosen = dso == row
            addresses = image.link_addresses(lookup_offset[chosen]).astype(np.int64)
            result[chosen] = np.isin(_Code(image, index.starts).function_at(addresses), roots)
        return result
