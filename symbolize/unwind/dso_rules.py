"""The unwinding rules of one DSO, compiled on demand from its call frame information."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from profiler.errors import FormatError
from profiler.model.arrays import BoolColumn, Int32Column, Int64Column, is_among
from symbolize.elf.call_frame_index import CallFrameIndex, call_frame_indexes
from symbolize.elf.call_frame_program import CFA_BY_EXPRESSION, CfaRule, FrameProgram, RuleKind
from symbolize.elf.image import ElfImage
from symbolize.elf.layout import EM_X86_64
from symbolize.unwind.page_table import PAGE_BYTES
from symbolize.unwind.registers import RIP, RSP
from symbolize.unwind.rule_rows import NO_RULES, RuleRow, RuleRows

# In a PLT stub that pushes (offset 11 and later of 16 bytes) one more word lies above the return address:
# rsp + 8 + (((rip & 15) >= 11) << 3).
_LAZY_PLT_CFA = bytes([0x77, 8, 0x80, 0, 0x3F, 0x1A, 0x3B, 0x2A, 0x33, 0x24, 0x22])
_ADDRESS_LIMIT = 2**62
_MANY_FDES = 200
_PLT_SECTIONS = (".plt", ".plt.sec", ".plt.got", ".iplt")


class DsoRules:
    """Rules of ``image`` by file offset, numbered in ``rows``."""

    def __init__(self, image: ElfImage, rows: RuleRows) -> None:
        self._image = image
        self._rows = rows
        self._pending_indexes = call_frame_indexes(image) if image.machine == EM_X86_64 else []
        self._indexes: list[CallFrameIndex] = []
        self._programs: list[FrameProgram] = []
        self._compiled: dict[tuple[int, int], _Run | None] = {}
        self._plt_rows = {
            True: rows.intern(RuleRow((CFA_BY_EXPRESSION, _LAZY_PLT_CFA), ((RIP, (RuleKind.OFFSET, -8)),), False, RIP)),
            False: rows.intern(RuleRow((RSP, 8), ((RIP, (RuleKind.OFFSET, -8)),), False, RIP)),
        }

    def code_range(self) -> tuple[int, int]:
        """File offsets (first, end) that hold executable code; (0, 0) when there are none."""
        segments = [s for s in self._image.load_segments if s.is_executable and s.file_size]
        if not segments:
            return 0, 0
        end = max(s.file_offset + s.file_size for s in segments)
        return min(s.file_offset for s in segments), min(end, len(self._image.data))

    def compile(self, offsets: Int64Column) -> Iterator[tuple[int, Int32Column]]:
        """Runs of row numbers (first file offset, one row per byte) that together cover every one of ``offsets``.

        ``offsets``: ascending, distinct.
        """
        link = self._image.link_addresses(offsets.astype(np.uint64)).view(np.int64)
        runs = self._runs(link)
        page = offsets // PAGE_BYTES
        position = 0
        while position < len(offsets):
            run = runs[position]
            last = position
            if run is None:
                row = np.full(1, self._row_without_fde(int(link[position])), np.int32)
                yield int(offsets[position]), row
            else:
                while last + 1 < len(offsets) and runs[last + 1] is run:
                    last += 1
                # Only the pages that were hit: a function of megabytes is not worth a table of its own.
                bias = int(offsets[position] - link[position])
                first = max(run.start + bias, int(page[position]) * PAGE_BYTES)
                end = min(run.end + bias, (int(page[last]) + 1) * PAGE_BYTES)
                yield first, run.rows_of(first - bias, end - bias)
            position = last + 1

    def function_starts(self, link_addresses: Int64Column) -> Int64Column:
        """Where the FDE that covers each address starts, -1 where there is none."""
        result = np.full(len(link_addresses), -1, np.int64)
        number = 0
        while (result < 0).any() and (index := self._index(number)) is not None:
            for at in np.flatnonzero(result < 0).tolist():
                link = int(link_addresses[at])
                candidate = int(index.candidates(link_addresses[at : at + 1])[0])
                start, end = self._range(number, candidate) if candidate >= 0 else (0, 0)
                if start <= link < end:
                    result[at] = start
            number += 1
        return result

    def may_lie_in(self, link_addresses: Int64Column, starts: Int64Column) -> BoolColumn:
        """False where ``function_starts`` is none of ``starts``, which ascend, told without a look at the FDEs."""
        result = np.zeros(len(link_addresses), np.bool_)
        number = 0
        while (index := self._index(number)) is not None:
            candidates = index.candidates(link_addresses)
            result |= (candidates >= 0) & is_among(index.starts[candidates], starts)
            number += 1
        return result

    def _range(self, number: int, candidate: int) -> tuple[int, int]:
        """Link addresses (start, end) of the code of an FDE; (0, 0) for a damaged one."""
        try:
            fde = self._indexes[number].section.fde(int(self._indexes[number].offsets[candidate]))
        except FormatError:
            return 0, 0
        return fde.start, fde.end

    def all_function_starts(self) -> Int64Column:
        """Link addresses, ascending, at which the FDEs of the first index start."""
        index = self._index(0)
        return index.starts if index is not None else np.zeros(0, np.int64)

    def _runs(self, link: Int64Column) -> list[_Run | None]:
        """The compiled FDE that covers each address."""
        found: list[_Run | None] = [None] * len(link)
        number = 0
        while None in found and self._index(number) is not None:
            candidates = self._indexes[number].candidates(link).tolist()
            self._compile_together(
                number, {row for row, run in zip(candidates, found, strict=True) if run is None and row >= 0}
            )
            for at, candidate in enumerate(candidates):
                if found[at] is None and candidate >= 0:
                    run = self._run(number, candidate)
                    if run is not None and run.start <= link[at] < run.end:
                        found[at] = run
            number += 1
        return found

    def _index(self, number: int) -> CallFrameIndex | None:
        """The index that is asked as ``number``-th, made when it is first needed."""
        while number >= len(self._indexes) and self._pending_indexes:
            made = self._pending_indexes.pop(0)()
            if made is not None:
                self._indexes.append(made)
                self._programs.append(FrameProgram(made.section))
        return self._indexes[number] if number < len(self._indexes) else None

    def _compile_together(self, number: int, candidates: set[int]) -> None:
        """Compile what is missing of ``candidates`` in one go if they are many; what is unusual stays missing."""
        missing = sorted(row for row in candidates if (number, row) not in self._compiled)
        if len(missing) < _MANY_FDES:
            return
        from symbolize.unwind.batch_compiler import compile_batch

        index = self._indexes[number]
        rows = compile_batch(index.section, self._programs[number], index.offsets[np.array(missing)])
        patterns = [self._rows.intern(RuleRow(cfa, tuple(sorted(rules.items())), False, RIP)) for cfa, rules in rows.patterns]
        numbers = np.array(patterns, np.int32)[rows.pattern]
        if not len(rows.fde):
            return
        first = np.flatnonzero(np.diff(rows.fde, prepend=-1))
        # Every FDE's row starts, followed by its end, in one column.
        ends = np.append(first[1:], len(rows.fde))
        bounds = np.insert(rows.start, ends, rows.code_end[first])
        pieces = zip(rows.fde[first].tolist(), first.tolist(), ends.tolist(), strict=True)
        for before, (fde, begin, end) in enumerate(pieces):
            self._compiled[(number, missing[fde])] = _Run(bounds[begin + before : end + before + 1], numbers[begin:end])

    def _run(self, number: int, candidate: int) -> _Run | None:
        key = (number, candidate)
        if key not in self._compiled:
            try:
                self._compiled[key] = self._compile_fde(number, int(self._indexes[number].offsets[candidate]))
            except FormatError:
                self._compiled[key] = None
        return self._compiled[key]

    def _compile_fde(self, number: int, offset: int) -> _Run | None:
        fde = self._indexes[number].section.fde(offset)
        common = fde.common
        starts: list[int] = []
        numbers: list[int] = []
        known: dict[tuple[CfaRule, int], int] = {}  # by CFA rule and identity of the register rules, which rows share
        rows = self._programs[number].rows(fde)
        for start, cfa, rules in rows:
            if start >= fde.end:
                break
            key = (cfa, id(rules))
            if key not in known:
                row = RuleRow(cfa, tuple(sorted(rules.items())), common.is_signal_frame, common.return_register)
                known[key] = self._rows.intern(row)
            starts.append(start)
            numbers.append(known[key])
        if not starts or fde.end >= _ADDRESS_LIMIT:
            return None
        return _Run(np.array([*starts, fde.end], np.int64), np.array(numbers, np.int32))

    def _row_without_fde(self, link_address: int) -> int:
        """lld writes no call frame information for its PLT."""
        for name in _PLT_SECTIONS:
            section = self._image.sections.get(name)
            if section is not None and 0 <= link_address - section.link_address < section.size:
                return self._plt_rows[name == ".plt"]
        return NO_RULES


class _Run:
    """One compiled FDE: row ``numbers[i]`` holds from link address ``bounds[i]`` to ``bounds[i + 1]``."""

    __slots__ = ("_bounds", "_numbers", "end", "start")

    def __init__(self, bounds: Int64Column, numbers: Int32Column) -> None:
        self.start = int(bounds[0])
        self.end = int(bounds[-1])
        self._bounds = bounds
        self._numbers = numbers

    def rows_of(self, first: int, end: int) -> Int32Column:
        """Row numbers of the bytes ``first`` .. ``end``, which lie inside the run."""
        bounds = np.minimum(np.maximum(self._bounds, first), end)
        return np.repeat(self._numbers, bounds[1:] - bounds[:-1])
