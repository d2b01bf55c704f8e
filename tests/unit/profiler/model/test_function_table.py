"""The rows of a function table: named functions first, then places that are named when asked for."""

from __future__ import annotations

import numpy as np
import pytest

from profiler.model.function import Function, NameSource
from profiler.model.function_table import FunctionTable, table_of_named

MAIN = Function("main", "main", "main", "", NameSource.SYMBOL_TABLE)
CLOSURE = Function("f", "_Zf", "f", "T::f", NameSource.LINKAGE_NAME)


@pytest.fixture
def table() -> FunctionTable:
    file, offset = np.array([1, 0], np.int32), np.array([0x1234, 2**47 - 1], np.uint64)
    return FunctionTable((MAIN, CLOSURE), ("libc.so.6", "[vdso]"), file, offset)


def test_places_are_called_by_file_and_offset(table: FunctionTable) -> None:
    names = ["main", "f", "[vdso]+0x1234", "libc.so.6+0x7fffffffffff"]
    assert [function.name for function in table] == names
    assert [table[row].name for row in range(len(table))] == names
    place = table[2]
    assert (place.linkage_name, place.key, place.trait_key) == (names[2], names[2], "")
    assert place.name_source is NameSource.UNRESOLVED


def test_sources_are_those_of_the_rows(table: FunctionTable) -> None:
    assert table.sources().tolist() == [int(function.name_source) for function in table]


def test_a_table_of_named_functions_has_no_places() -> None:
    assert list(table_of_named([CLOSURE, MAIN])) == [CLOSURE, MAIN]
    assert table_of_named([]).sources().tolist() == []
