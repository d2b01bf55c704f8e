"""Chains put together from a symbol table and a source map, both written by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from profiler.model.arrays import UInt64Column
from profiler.model.function import NameSource
from profiler.model.symbols import DsoSymbols
from symbolize.dwarf.intervals import Intervals
from symbolize.dwarf.source_map import AnswerTable, NameTable, NodeTable, SourceMap, empty_source_map
from symbolize.dwarf.strings import make_pool
from symbolize.elf.symbol_table import SymbolTable
from symbolize.symbol_map import DsoNames, FunctionMemo, resolve_chains
from symbolize.symbol_names import SymbolNames, add_symbol_names, no_symbol_names

TEXTS = ["outer_dwarf_name", "inner", "_Z5innerv", "/a/core/src/lib.rs", "/a/app/src/main.rs", "partial_one"]


def column(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.array(values, np.int32)


def source_map() -> SourceMap:
    """A unit at 0x1000-0x1040.  Known addresses: 0x1000 in a function; 0x1012 with ``inner`` inlined there (called at
    main.rs:7:3); 0x1015 with a function known by its bare name only in it (called at lib.rs:20)."""
    known = empty_source_map(Intervals(np.array([0x1000, 0x1040], np.uint64), column(0, -1)), 1, 0)
    sources = [NameSource.QUALIFIED, NameSource.LINKAGE_NAME, NameSource.PARTIAL]
    return replace(
        known,
        answers=AnswerTable(
            np.array([0x1000, 0x1012, 0x1015], np.uint64), column(0, 1, 2), column(4, 3, 3), column(1, 10, 30), column(2, 0, 0)
        ),
        nodes=NodeTable(column(-1, 0, 1), column(0, 1, 2), column(-1, 4, 3), column(0, 7, 20), column(0, 3, 0)),
        names=NameTable(column(0, 1, 5), column(-1, 2, -1), np.array(sources, np.uint8)),
        strings=make_pool(TEXTS),
    )


def symbol_table() -> SymbolTable:
    strings = b"\0_ZN3app4mainE\0second\0"
    start = np.array([0x1000, 0x2000], np.uint64)
    return SymbolTable(start, start + np.uint64(0x40), np.array([1, 15]), memoryview(strings))


def shown(symbols: DsoSymbols, row: int) -> list[tuple[str, str, int, int]]:
    chains = symbols.chains
    places = range(int(chains.start[row]), int(chains.start[row + 1]))
    return [
        (
            symbols.functions[int(chains.function[place])].name,
            symbols.files[int(chains.file[place])] if chains.file[place] >= 0 else "",
            int(chains.line[place]),
            int(chains.column[place]),
        )
        for place in places
    ]


def named(*tables: SymbolTable) -> SymbolNames:
    """What the tables say about every address that the tests ask for."""
    return add_symbol_names(no_symbol_names(np.zeros(0, np.int64)), tables, np.arange(0x1000, 0x2100).astype(np.uint64))


def resolve(names: DsoNames, *addresses: int) -> DsoSymbols:
    places: UInt64Column = np.array(addresses, np.uint64)
    return resolve_chains(names, places + np.uint64(0x100), places, FunctionMemo())


def test_chains_are_innermost_first_and_calls_belong_to_the_outer_frame() -> None:
    symbols = resolve(DsoNames("app", named(symbol_table()), source_map()), 0x1015, 0x1000, 0x1012, 0x2004, 0x9000)
    assert shown(symbols, 0) == [
        ("core::partial_one", "/a/core/src/lib.rs", 30, 0),
        ("inner()", "/a/core/src/lib.rs", 20, 0),
        ("app::main", "/a/app/src/main.rs", 7, 3),
    ]
    assert shown(symbols, 1) == [("app::main", "/a/app/src/main.rs", 1, 2)]
    assert shown(symbols, 2) == [("inner()", "/a/core/src/lib.rs", 10, 0), ("app::main", "/a/app/src/main.rs", 7, 3)]
    assert shown(symbols, 3) == [("second", "", 0, 0)]
    assert shown(symbols, 4) == [("app+0x9100", "", 0, 0)]
    assert symbols.has_debug_info.tolist() == [1, 1, 1, 0, 0]


def test_name_sources_and_linkage_names() -> None:
    symbols = resolve(DsoNames("app", named(symbol_table()), source_map()), 0x1015, 0x9000)
    found = {each.name: (each.linkage_name, each.name_source) for each in symbols.functions}
    assert found == {
        "core::partial_one": ("core::partial_one", NameSource.PARTIAL),
        "inner()": ("_Z5innerv", NameSource.LINKAGE_NAME),
        "app::main": ("_ZN3app4mainE", NameSource.SYMBOL_TABLE),
        "app+0x9100": ("app+0x9100", NameSource.UNRESOLVED),
    }


def test_without_a_symbol_the_debug_information_names_the_outermost_frame() -> None:
    symbols = resolve(DsoNames("app", None, source_map()), 0x1000)
    assert shown(symbols, 0) == [("outer_dwarf_name", "/a/app/src/main.rs", 1, 2)]
    assert symbols.functions[0].name_source == NameSource.QUALIFIED


def test_the_first_symbol_table_that_covers_an_address_names_it() -> None:
    strings = memoryview(b"\0first\0")
    first = SymbolTable(np.array([0x2000], np.uint64), np.array([0x2010], np.uint64), np.array([1]), strings)
    symbols = resolve(DsoNames("app", named(first, symbol_table()), None), 0x2004, 0x2014)
    assert [shown(symbols, row)[0][0] for row in (0, 1)] == ["first", "second"]


def test_nothing_known_is_one_frame_per_offset() -> None:
    symbols = resolve(DsoNames("[vdso]", None, None), 0x10, 0x20, 0x10)
    assert [shown(symbols, row) for row in range(3)] == [
        [("[vdso]+0x110", "", 0, 0)],
        [("[vdso]+0x120", "", 0, 0)],
        [("[vdso]+0x110", "", 0, 0)],
    ]
    assert len(symbols.functions) == 2


def test_no_addresses_give_no_chains() -> None:
    symbols = resolve(DsoNames("app", named(symbol_table()), source_map()))
    assert symbols.chains.start.tolist() == [0]
    assert len(symbols.functions) == 0


def test_an_inlined_call_without_name_is_named_by_its_source_file() -> None:
    """As in a file reduced by dwz whose common file is missing."""
    known = source_map()
    known = replace(known, nodes=replace(known.nodes, name=column(0, 1, -1)))
    symbols = resolve(DsoNames("app", named(symbol_table()), known), 0x1015)
    assert [name for name, *_ in shown(symbols, 0)] == ["core::{inlined}", "inner()", "app::main"]
    assert symbols.functions[int(symbols.chains.function[0])].name_source == NameSource.PARTIAL
