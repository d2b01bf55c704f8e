"""Names of kernel code from the text of /proc/kallsyms: ``address type name[<tab>[module]]`` per line."""

from __future__ import annotations

import mmap
import re

import numpy as np

from profiler.model.arrays import BoolColumn, Int64Column, UInt8Column, UInt64Column

_ADDRESS_DIGITS = 16
_TYPE_AT = _ADDRESS_DIGITS + 1
_NAME_AT = _ADDRESS_DIGITS + 3
_CODE_TYPES = b"tTwW"
_PAGE_BYTES = 4096
_ENCODED_HEADER = "slotscope kallsyms 1 {:12} {:12}\n"
_ENCODED_HEADER_PATTERN = re.compile(rb"slotscope kallsyms 1 +(\d+) +(\d+)\n")
_COLUMNS = 3  # start, end, name_start
_WORD_BYTES = 8


class KernelSymbols:
    """Code symbols of one kernel, as of one boot; made by ``parse_kallsyms``."""

    __slots__ = ("_end", "_name_start", "_start", "_text")

    def __init__(self, text: bytes | mmap.mmap, start: UInt64Column, end: UInt64Column, name_start: Int64Column) -> None:
        """``start`` ascending and distinct; ``name_start``: byte of each name in ``text``."""
        self._text = text
        self._start = start
        self._end = end
        self._name_start = name_start

    def __len__(self) -> int:
        return len(self._start)

    def names(self, addresses: UInt64Column) -> list[str]:
        """The symbol that covers each runtime address, without its module; "" where none does."""
        return [name for name, _ in self._found(addresses)]

    def modules(self, addresses: UInt64Column) -> list[str]:
        """The module that owns the symbol at each runtime address ("xfs"), "" for the kernel proper and where none is known."""
        return [module for _, module in self._found(addresses)]

    def address(self, name: str) -> int | None:
        """The start of the code symbol of that name, aliases included; ``None`` when there is none."""
        wanted = b" " + name.encode() + b"\n"
        at = self._text.find(wanted)
        while at >= 0:
            if at == self._text.rfind(b"\n", 0, at) + 1 + _TYPE_AT + 1 and self._text[at - 1] in _CODE_TYPES:
                return int(self._text[at - _NAME_AT + 1 : at - 2], 16)
            at = self._text.find(wanted, at + 1)
        return None

    @property
    def first_address(self) -> int:
        return int(self._start[0]) if len(self._start) else 0

    def spans(self, addresses: UInt64Column) -> bool:
        """Do all addresses lie between the first symbol and the end of the last."""
        return not len(addresses) or bool(addresses.min() >= self._start[0] and addresses.max() < self._end[-1])

    def encode_kernel_proper(self) -> list[bytes] | None:
        """The symbols outside of modules, for ``decode_kernel_symbols``; ``None`` where modules lie between them."""
        rows = np.flatnonzero(~self._in_module())
        if not len(rows) or rows[-1] - rows[0] + 1 != len(rows):
            return None
        header = _ENCODED_HEADER.format(len(rows), len(self._text)).encode()
        padding = bytes(-(len(header) + len(self._text)) % _WORD_BYTES)
        name_start = self._name_start[rows] + len(header)
        return [header, self._text[:], padding, *(part.tobytes() for part in (self._start[rows], self._end[rows], name_start))]

    def _in_module(self) -> BoolColumn:
        text = np.frombuffer(self._text, np.uint8)
        line_end = np.flatnonzero(text == ord("\n"))
        line = np.searchsorted(line_end, self._name_start)
        last = np.append(line_end, len(text))[line] - 1
        in_module: BoolColumn = text[last] == ord("]")
        return in_module

    def _found(self, addresses: UInt64Column) -> list[tuple[str, str]]:
        row = np.searchsorted(self._start, addresses, side="right") - 1
        covered = (row >= 0) & (addresses < self._end[row])
        row = np.where(covered, row, -1)
        distinct, inverse = np.unique(row, return_inverse=True)
        known = [self._split_name(position) if position >= 0 else ("", "") for position in distinct.tolist()]
        return [known[position] for position in inverse.tolist()]

    def _split_name(self, row: int) -> tuple[str, str]:
        first = int(self._name_start[row])
        end = self._text.find(b"\n", first)
        name, _, module = self._text[first : end if end >= 0 else None].decode("utf-8", "backslashreplace").partition("\t")
        return name.strip(), module.strip().removeprefix("[").removesuffix("]")


def parse_kallsyms(text: bytes) -> KernelSymbols | None:
    """Symbols of ``text``; ``None`` when it holds no code address, as under kptr_restrict, where all addresses are zero.

    Lines of another form are passed over.  A symbol reaches up to the next one; the last of a module or of the kernel to the
    end of the page behind its first.  Of several names for one address the choice is perf's: not weak over weak, global over
    local, fewer leading underscores, then the longest, then the first by name.
    """
    data = np.frombuffer(text, np.uint8)
    line_start, line_end = _lines(data)
    long_enough = line_end - line_start > _NAME_AT
    line_start, line_end = line_start[long_enough], line_end[long_enough]
    address, is_hexadecimal = _addresses(data, line_start)
    is_code = np.isin(data[line_start + _TYPE_AT], np.frombuffer(_CODE_TYPES, np.uint8))
    kept = is_hexadecimal & is_code & (address != 0)
    if not kept.any():
        return None
    address, line_start, line_end = address[kept], line_start[kept], line_end[kept]
    order = np.argsort(address, kind="stable")
    address, line_start, line_end = address[order], line_start[order], line_end[order]
    chosen = _choose(text, address, line_start, line_end)
    return KernelSymbols(text, address[chosen], _ends(text, address[chosen], line_end[chosen]), line_start[chosen] + _NAME_AT)


def decode_kernel_symbols(data: bytes | mmap.mmap) -> KernelSymbols | None:
    """The symbols in what ``encode_kernel_proper`` made, whose text is left where it is; ``None`` for anything else."""
    header = _ENCODED_HEADER_PATTERN.match(data)
    if header is None:
        return None
    rows, text_end = int(header[1]), header.end() + int(header[2])
    first = text_end + -text_end % _WORD_BYTES
    if not rows or len(data) != first + _COLUMNS * rows * _WORD_BYTES:
        return None
    start, end, name_start = np.frombuffer(data, np.uint64, _COLUMNS * rows, first).reshape(_COLUMNS, rows)
    return KernelSymbols(data, start, end, name_start.view(np.int64))


def _lines(data: UInt8Column) -> tuple[Int64Column, Int64Column]:
    end = np.flatnonzero(data == ord("\n")).astype(np.int64)
    if len(data) and data[-1] != ord("\n"):
        end = np.append(end, len(data))
    start = np.concatenate([np.zeros(1, np.int64), end + 1])[: len(end)]
    return start, end


def _addresses(data: UInt8Column, line_start: Int64Column) -> tuple[UInt64Column, BoolColumn]:
    """(the number in the first 16 characters of each line, is it one)."""
    value = np.zeros(len(line_start), np.uint64)
    digits = np.full(256, 255, np.uint8)
    digits[np.frombuffer(b"0123456789", np.uint8)] = np.arange(10)
    digits[np.frombuffer(b"abcdef", np.uint8)] = np.arange(10, 16)
    digits[np.frombuffer(b"ABCDEF", np.uint8)] = np.arange(10, 16)
    is_valid = (data[line_start + _ADDRESS_DIGITS] == ord(" ")) & (data[line_start + _TYPE_AT + 1] == ord(" "))
    for position in range(_ADDRESS_DIGITS):
        digit = digits[data[line_start + position]]
        is_valid &= digit < 16
        value = (value << np.uint64(4)) | digit
    return value, is_valid


def _choose(text: bytes, address: UInt64Column, line_start: Int64Column, line_end: Int64Column) -> Int64Column:
    """One row per address."""
    first = np.flatnonzero(np.concatenate([[True], address[1:] != address[:-1]]))
    end = np.append(first[1:], len(address))
    chosen = first.copy()
    for group in np.flatnonzero(end - first > 1).tolist():
        rows = range(int(first[group]), int(end[group]))
        chosen[group] = min(rows, key=lambda row: _alias_rank(text[line_start[row] : line_end[row]]))
    return chosen


def _alias_rank(line: bytes) -> tuple[bool, bool, int, int, bytes]:
    kind, name = line[_TYPE_AT : _TYPE_AT + 1], line[_NAME_AT:].partition(b"\t")[0]
    return kind in b"wW", kind.islower(), len(name) - len(name.lstrip(b"_")), -len(name), name


def _ends(text: bytes, address: UInt64Column, line_end: Int64Column) -> UInt64Column:
    data = np.frombuffer(text, np.uint8)
    in_module = data[line_end - 1] == ord("]")
    page_behind = (address | np.uint64(_PAGE_BYTES - 1)) + np.uint64(1 + _PAGE_BYTES)
    end = page_behind.copy()
    end[:-1] = address[1:]
    leaves = np.flatnonzero(in_module[:-1] != in_module[1:])
    end[leaves] = np.minimum(page_behind[leaves], address[leaves + 1])
    return end
