"""Symbolization of DSOs: finds the files, decodes what is hit, keeps it in the cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from profiler.errors import FormatError
from profiler.model.arrays import BoolColumn, UInt64Column
from profiler.model.dso import Dso, DsoKind
from profiler.model.frame_table import lookup_offsets
from profiler.model.function import Function
from profiler.model.symbols import DsoSymbols
from symbolize.cache import SymbolCache
from symbolize.dwarf.source_map import SourceMap
from symbolize.elf.image import ElfImage
from symbolize.elf.symbol_table import SymbolTable
from symbolize.locate import LocatedBinary, Locator
from symbolize.stored_functions import StoredFunctions, joined, store_functions
from symbolize.symbol_map import DsoNames, FunctionMemo, resolve_chains
from symbolize.symbol_names import SymbolNames, add_symbol_names, no_symbol_names, tables_origin

NO_ADDRESS = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
SYMBOLIZED_KINDS = (DsoKind.FILE, DsoKind.VDSO)


class Symbolizer:
    """Answers for FILE and VDSO DSOs; names of kernel, JIT and imported code are known at capture.

    ``cache`` None: everything is decoded anew in each process.
    """

    def __init__(self, locator: Locator, cache: SymbolCache | None) -> None:
        self._locator = locator
        self._cache = cache
        self._memo = FunctionMemo()
        self._symbols: dict[Dso, SymbolNames] = {}
        self._symbol_tables: dict[Dso, tuple[tuple[SymbolTable, ...], str]] = {}
        self._source_maps: dict[Dso, SourceMap | None] = {}
        self._stored_functions: dict[Dso, StoredFunctions] = {}

    def symbolize(self, dso: Dso, offsets: UInt64Column, is_return_address: BoolColumn) -> DsoSymbols:
        """Inline chains for file offsets as recorded (see ``FrameTable``), in the order given.

        Never raises for missing or damaged files: such frames are named ``dso+0xoffset`` and ``status`` says why.
        """
        if dso.kind not in SYMBOLIZED_KINDS:
            nothing = DsoNames(dso.name, None, None)
            return resolve_chains(nothing, offsets, np.full(len(offsets), NO_ADDRESS), self._memo)
        located = self._locator.locate(dso)
        # Without the binary its debug file answers, if it shows where the code lay in the binary.
        file = located.image or located.debug_image
        if file is None:
            answer = resolve_chains(DsoNames(dso.name, None, None), offsets, np.full(len(offsets), NO_ADDRESS), self._memo)
            return replace(answer, status=located.status)
        addresses = file.link_addresses(lookup_offsets(offsets, is_return_address))
        symbols, damage = self._symbol_names(dso, located, addresses)
        self._load_functions(dso, file.build_id)
        source_map = self._source_map(dso, located, addresses)
        names = DsoNames(dso.name, symbols, source_map)
        answer = resolve_chains(names, offsets, addresses, self._memo)
        self._store_functions(dso, file.build_id, answer.functions.named)
        caveats = replace(located.caveats, incomplete=_incomplete(dso, located, source_map))
        return replace(answer, status=located.status or damage, caveats=caveats)

    def _symbol_names(self, dso: Dso, located: LocatedBinary, addresses: UInt64Column) -> tuple[SymbolNames, str]:
        """(what the symbol tables say about at least ``addresses``, "" or what is wrong with the tables).

        What damaged tables say is not kept: the next process has to tell of the damage too.
        """
        build_id = located.images[-1].build_id
        known = self._symbols.get(dso)
        if known is None:
            origin = tables_origin(located.images)
            known = self._cache.load_symbols(build_id) if self._cache is not None else None
            if known is None or not np.array_equal(known.origin, origin):
                known = no_symbol_names(origin)
        unasked = known.unasked(addresses)
        damage = self._symbol_tables[dso][1] if dso in self._symbol_tables else ""
        if len(unasked):
            tables, damage = self._tables(dso, located.images)
            known = add_symbol_names(known, tables, unasked)
            if self._cache is not None and not damage:
                self._cache.store_symbols(build_id, known)
        self._symbols[dso] = known
        return known, damage

    def _tables(self, dso: Dso, images: Sequence[ElfImage]) -> tuple[tuple[SymbolTable, ...], str]:
        """(symbol tables of the debug file and the binary, "" or what is wrong with them)."""
        known = self._symbol_tables.get(dso)
        if known is None:
            tables, damage = [], ""
            for image in images:
                try:
                    tables.append(image.symbol_table())
                except FormatError as error:
                    damage = str(error)
            known = self._symbol_tables[dso] = (tuple(tables), damage)
        return known

    def _load_functions(self, dso: Dso, build_id: bytes) -> None:
        """Lets the memo know the functions that the cache holds for this file."""
        if dso not in self._stored_functions:
            stored = self._cache.load_functions(build_id) if self._cache is not None else None
            if stored is not None:
                self._memo.add(stored)
            self._stored_functions[dso] = stored if stored is not None else store_functions(())

    def _store_functions(self, dso: Dso, build_id: bytes, functions: tuple[Function, ...]) -> None:
        stored = self._stored_functions[dso]
        more = [each for each in functions if not stored.holds(each)]
        if self._cache is not None and more:
            self._stored_functions[dso] = joined(stored, store_functions(more))
            self._cache.store_functions(build_id, self._stored_functions[dso])

    def _source_map(self, dso: Dso, located: LocatedBinary, addresses: UInt64Column) -> SourceMap | None:
        """What the debug information says about at least ``addresses``, None without any."""
        build_id = (located.image or located.images[0]).build_id
        if dso in self._source_maps:
            known = self._source_maps[dso]
        else:
            known = self._cache.load(build_id) if self._cache is not None else None
        if known is None or len(known.unanswered(addresses)):
            grown = _grow(known, located, addresses, self._memo)
            is_whole = grown is not None and not _incomplete(dso, located, grown)
            if grown is not None and is_whole and grown is not known and self._cache is not None:
                self._cache.store(build_id, grown)
            known = grown
        self._source_maps[dso] = known
        return known


def _incomplete(dso: Dso, located: LocatedBinary, source_map: SourceMap | None) -> str:
    """Which debug information stands in files that are not read, "" = none."""
    if source_map is None:
        return ""
    if source_map.skeletons:
        return f"{dso.path}: .dwo files with its debug information are missing (-gsplit-dwarf)"
    if located.linked_files is not None and located.linked_files.lacks_supplementary():
        return f"{dso.path}: the file that dwz shared its debug information with is missing (.gnu_debugaltlink)"
    return ""


def _grow(known: SourceMap | None, located: LocatedBinary, addresses: UInt64Column, memo: FunctionMemo) -> SourceMap | None:
    for image in located.images:
        if not image.has_debug_info():
            continue
        # Not needed for what has none, nor when the cache has all answers.
        from symbolize.dwarf.debug_info import DebugInfo
        from symbolize.dwarf.sections import read_sections
        from symbolize.shared_growth import grow

        try:
            sections = read_sections(image)
        except FormatError:
            continue
        if sections is not None:
            debug_info = DebugInfo(sections, located.linked_files)
            return grow(debug_info, debug_info.matching(known), addresses, memo)
    return known
