"""Decodes of one file's debug information what a batch of addresses hits, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from profiler.model.arrays import Int32Column, Int64Column, UInt64Column, distinct
from symbolize.dwarf.function_names import FunctionNames
from symbolize.dwarf.inline_chains import NO_DIE, InlineChains
from symbolize.dwarf.intervals import NOBODY, Intervals
from symbolize.dwarf.line_header import LineHeader, read_line_header
from symbolize.dwarf.line_program import LineTable, run_line_program, run_sequences
from symbolize.dwarf.line_sequences import LineSequences, find_sequences
from symbolize.dwarf.other_files import OtherFiles
from symbolize.dwarf.sections import DwarfSections
from symbolize.dwarf.source_map import SourceMap, empty_source_map
from symbolize.dwarf.source_map_growth import OutlinedUnit, UnitAnswers, add_answers, add_outlines, text_sequences
from symbolize.dwarf.unit_map import build_unit_map
from symbolize.dwarf.unit_outline import UnitOutline, read_outline
from symbolize.dwarf.unit_reader import UnitReader
from symbolize.dwarf.unit_root import MALFORMED

WHOLE_PROGRAM = -1
# Enough for dozens of units at once, and little beside what their answers take.
BATCH_BYTES = 24 << 20


class DebugInfo:
    """The debug information of one file.  Damaged units are left out and counted, never raised."""

    def __init__(self, sections: DwarfSections, files: OtherFiles | None = None) -> None:
        self._sections = sections
        self._reader = UnitReader(sections, files)
        self._names = FunctionNames(self._reader)
        self._headers: dict[int, LineHeader | None] = {}

    def empty_map(self) -> SourceMap:
        """A source map that knows which unit covers which addresses, and nothing else yet."""
        found = build_unit_map(self._reader)
        return empty_source_map(found.covered, len(self._reader.units), found.left_out)

    def matching(self, known: SourceMap | None) -> SourceMap:
        """``known``, or an empty map where there is none, or one of other debug information, which has another number of
        units."""
        return known if known is not None and len(known.is_outlined) == len(self._reader.units) else self.empty_map()

    def unit_bytes(self) -> Int64Column:
        """Size of each unit."""
        return np.array([unit.end - unit.offset for unit in self._reader.units], np.int64)

    def extend(self, known: SourceMap, addresses: UInt64Column) -> SourceMap:
        """``known``, which matches, with answers for the link addresses."""
        asked = known.unanswered(addresses)
        unit = known.units.lookup(asked)
        for rows in self._batches(distinct(unit).tolist()):
            known = self._extend(known, asked[np.isin(unit, rows)])
            self._reader.close_units()
            self._headers.clear()
        return known

    def _batches(self, rows: list[int]) -> Iterable[list[int]]:
        """Units whose bytes are held in memory together."""
        batch: list[int] = []
        size = 0
        for row in rows:
            header = self._reader.units[row]
            if batch and size + header.end - header.offset > BATCH_BYTES:
                yield batch
                batch, size = [], 0
            batch.append(row)
            size += header.end - header.offset
        if batch:
            yield batch

    def _extend(self, known: SourceMap, asked: UInt64Column) -> SourceMap:
        units = known.units_to_outline(asked)
        if units:
            known = add_outlines(known, [self._outline(row, known.units) for row in units])
        answers = self._answers(known, asked)
        found = [unit.nodes.die for unit in answers if unit.nodes is not None]
        dies = distinct(np.concatenate(found)).tolist() if found else []
        return add_answers(known, answers, {die: self._names.name(die) for die in dies if die != NO_DIE})

    def _outline(self, row: int, units: Intervals) -> OutlinedUnit:
        outline: UnitOutline | None = None
        is_damaged = is_skeleton = False
        try:
            is_skeleton = self._reader.is_incomplete(row)
            outline = read_outline(self._reader.open(row), units.ranges_of(row))
        except MALFORMED:
            is_damaged = True
        sequences: LineSequences | None = None
        header = self._line_header(row)
        if header is not None:
            sequences = find_sequences(header)
        is_text = text_sequences(sequences, self._sections.text_low, self._sections.text_high)
        if header is not None and sequences is None:
            whole = np.full(1, WHOLE_PROGRAM)
            sequences, is_text = LineSequences(np.zeros(1, np.uint64), whole, whole), np.ones(1, np.bool_)
        return OutlinedUnit(row, outline, sequences, is_text, is_damaged, is_skeleton)

    def _line_header(self, row: int) -> LineHeader | None:
        """None when the unit has no line program, or a damaged one."""
        if row not in self._headers:
            try:
                root = self._reader.kept_root(row)
                self._headers[row] = read_line_header(root) if root.line_offset >= 0 else None
            except MALFORMED:
                self._headers[row] = None
        return self._headers[row]

    def _answers(self, known: SourceMap, addresses: UInt64Column) -> list[UnitAnswers]:
        """``addresses`` ascending, all in units.  A unit answers for what it covers."""
        unit = known.units.lookup(addresses)
        function = known.covered.lookup(addresses)
        answers = []
        for row in distinct(unit).tolist():
            own = unit == row
            answers.append(self._unit_answers(known, row, addresses[own], function[own]))
        return answers

    def _unit_answers(self, known: SourceMap, row: int, addresses: UInt64Column, function: Int32Column) -> UnitAnswers:
        node, nodes = np.full(len(addresses), NOBODY, np.int32), None
        lines: LineTable | None = None
        is_damaged = False
        header = self._line_header(row)
        try:
            chains = self._chains(known, row, addresses, function)
            if chains is not None:
                nodes = chains.nodes()
                node = np.array([chains.node_of.get(address, NOBODY) for address in addresses.tolist()], np.int32)
        except MALFORMED:
            is_damaged = True
        try:
            lines = self._lines(known, row, header, addresses) if header is not None else None
        except MALFORMED:
            is_damaged = True
        # The program itself may define more files than its header.
        file_names = lines.file_names if lines is not None else header.file_names if header is not None else ()
        return UnitAnswers(addresses, node, nodes, lines, file_names, is_damaged)

    def _chains(self, known: SourceMap, row: int, addresses: UInt64Column, function: Int32Column) -> InlineChains | None:
        # With overlapping units, the function may be described by another unit than the one that covers the address.
        is_own = (function >= 0) & (known.functions.unit[function] == row) if len(known.functions.unit) else function >= 0
        if not np.any(is_own):
            return None
        chains = InlineChains(self._reader.open(row))
        for each in distinct(function[is_own]).tolist():
            chains.add_function(int(known.functions.die[each]), addresses[function == each].tolist())
        return chains

    def _lines(self, known: SourceMap, row: int, header: LineHeader, addresses: UInt64Column) -> LineTable | None:
        sequences = known.sequences
        own = np.flatnonzero(sequences.unit == row)
        if not len(own):
            return None
        start = sequences.address[own]
        place = np.searchsorted(start, addresses, side="right") - 1
        hit = own[_hit_sequences(start, place)]
        spans = list(zip(sequences.begin[hit].tolist(), sequences.end[hit].tolist(), strict=True))
        if not any(begin == WHOLE_PROGRAM for begin, _ in spans):
            try:
                return run_sequences(header, self._sections, spans, addresses)
            except MALFORMED:
                pass  # the program is not cut where it seemed to be: run it as a whole
        return run_line_program(header, self._sections)


def _hit_sequences(start: UInt64Column, place: Int64Column) -> Int64Column:
    """Rows of the sequences that begin at one address with those of ``place``; the ones of empty functions share it with the
    next one."""
    return np.flatnonzero(np.isin(start, start[distinct(place[place >= 0])]))
