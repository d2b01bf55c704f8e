from __future__ import annotations

import os
import subprocess
import sys
import threading
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.model.function import Function, NameSource
from support.elf_programs import compile_program, load_image
from symbolize.cache import (
    SymbolCache,
    decode_functions,
    decode_source_map,
    decode_symbols,
    default_cache_directory,
    encode_functions,
    encode_source_map,
    encode_symbols,
)
from symbolize.dwarf.debug_info import DebugInfo
from symbolize.dwarf.sections import read_sections
from symbolize.dwarf.source_map import SourceMap
from symbolize.dwarf.strings import StringPool, make_pool
from symbolize.stored_functions import StoredFunctions, joined, store_functions
from symbolize.symbol_names import SymbolNames

SOURCE = r"""
volatile int sink;
struct S { int v; int get(int k) const { return v * k + sink; } };
static inline __attribute__((always_inline)) int twice(int v) { S s{v}; return s.get(2) + sink; }
int main(int argc, char **) { return twice(argc) + argc; }
"""


@pytest.fixture(scope="module")
def source_map(tmp_path_factory: pytest.TempPathFactory) -> SourceMap:
    image = load_image(compile_program(tmp_path_factory.mktemp("cache"), "small.cpp", SOURCE, ["-O1", "-g"]))
    contents = read_sections(image)
    assert contents is not None
    info = DebugInfo(contents)
    text = image.sections[".text"]
    return info.extend(info.empty_map(), np.arange(text.link_address, text.link_address + text.size).astype(np.uint64))


def plain(value: object) -> object:
    """A source map as nested lists that compare by value."""
    if is_dataclass(value):
        return [plain(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, np.ndarray):
        return value.tolist()
    return bytes(value) if isinstance(value, (bytes, memoryview)) else value


def test_a_stored_map_comes_back_equal(source_map: SourceMap, tmp_path: Path) -> None:
    cache = SymbolCache(tmp_path / "new" / "directory")
    assert cache.load(b"\x12\x34") is None
    assert cache.store(b"\x12\x34", source_map)
    loaded = cache.load(b"\x12\x34")
    assert plain(loaded) == plain(source_map)
    assert len(source_map.nodes.parent) >= 3
    assert cache.load(b"\x12\x35") is None


@given(st.data())
def test_any_damaged_byte_makes_the_file_absent(source_map: SourceMap, data: st.DataObject) -> None:
    content = bytearray(b"".join(encode_source_map(source_map)))
    position = data.draw(st.integers(0, len(content) - 1))
    content[position] ^= data.draw(st.integers(1, 255))
    assert decode_source_map(bytes(content)) is None


@pytest.mark.parametrize("size", [0, 1, 20, 40, 100, -1, -8])
def test_truncated_files_are_absent(source_map: SourceMap, size: int) -> None:
    assert decode_source_map(b"".join(encode_source_map(source_map))[:size]) is None


@pytest.mark.parametrize(
    "column", [{"parent": 2}, {"parent": -7}, {"name": 1000}, {"call_file": 10_000}, {"name": -9}, {"call_file": -2}]
)
def test_rows_outside_of_their_table_are_refused(source_map: SourceMap, column: dict[str, int]) -> None:
    """Right checksum, wrong content: nothing in a look-up may fail or run in circles."""
    ((name, value),) = column.items()
    changed = getattr(source_map.nodes, name).copy()
    changed[0] = value
    wrong = replace(source_map, nodes=replace(source_map.nodes, **{name: changed}))
    assert decode_source_map(b"".join(encode_source_map(wrong))) is None


FUNCTIONS = (
    Function("f(int)", "_Z1fi", "f", "", NameSource.SYMBOL_TABLE),
    Function("<T as Tr>::g", "_RNv", "T::g", "Tr::g", NameSource.LINKAGE_NAME),
    Function("größe", "größe", "größe", "", NameSource.QUALIFIED),
    Function("lost\udcff", "lost\udcff", "lost\udcff", "", NameSource.PARTIAL),
)


def found_in(stored: StoredFunctions | None, functions: tuple[Function, ...]) -> list[Function | None]:
    assert stored is not None
    assert len(stored) == len(functions)
    return [stored.find(each.linkage_name, each.name_source) for each in functions]


def test_stored_functions_come_back_equal(tmp_path: Path) -> None:
    cache = SymbolCache(tmp_path)
    assert cache.load_functions(b"\x01\x02") is None
    assert cache.store_functions(b"\x01\x02", store_functions(FUNCTIONS))
    loaded = cache.load_functions(b"\x01\x02")
    assert found_in(loaded, FUNCTIONS) == list(FUNCTIONS)
    assert not cache.store_functions(b"", store_functions(FUNCTIONS))


@given(st.data())
def test_any_damaged_byte_of_the_functions_makes_them_absent(data: st.DataObject) -> None:
    content = bytearray(b"".join(encode_functions(store_functions(FUNCTIONS))))
    position = data.draw(st.integers(0, len(content) - 1))
    content[position] ^= data.draw(st.integers(1, 255))
    assert decode_functions(bytes(content)) is None


ODD_NAMES = st.text(
    st.one_of(st.characters(exclude_categories=["Cs"]), st.characters(min_codepoint=0xDC80, max_codepoint=0xDCFF))
)


@given(st.lists(st.tuples(ODD_NAMES, ODD_NAMES, st.sampled_from(NameSource)), unique_by=lambda each: each[1:], max_size=8))
def test_any_names_come_back_equal(names: list[tuple[str, str, NameSource]]) -> None:
    functions = tuple(Function(name, linkage_name, name[:2], name[1:], source) for name, linkage_name, source in names)
    for cut in (0, len(functions) // 2):
        stored = joined(store_functions(functions[:cut]), store_functions(functions[cut:]))
        decoded = decode_functions(b"".join(encode_functions(stored)))
        assert found_in(decoded, functions) == list(functions)


def test_functions_are_told_apart_by_linkage_name_and_source() -> None:
    stored = store_functions(FUNCTIONS)
    assert all(stored.holds(each) for each in FUNCTIONS)
    assert stored.find("elsewhere", FUNCTIONS[0].name_source) is None
    others = [source for source in NameSource if source not in {each.name_source for each in FUNCTIONS}]
    assert others
    assert stored.find(FUNCTIONS[0].linkage_name, others[0]) is None
    assert not stored.holds(replace(FUNCTIONS[0], name_source=others[0]))


def test_files_without_build_id_are_not_cached(source_map: SourceMap, tmp_path: Path) -> None:
    cache = SymbolCache(tmp_path)
    assert not cache.store(b"", source_map)
    assert list(tmp_path.iterdir()) == []
    assert cache.load(b"") is None


def test_a_directory_that_cannot_be_made_costs_nothing(source_map: SourceMap, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = SymbolCache(tmp_path / "file")
    assert not cache.store(b"\x01\x02", source_map)
    assert cache.load(b"\x01\x02") is None


def test_writers_and_readers_at_once_see_whole_files(source_map: SourceMap, tmp_path: Path) -> None:
    cache = SymbolCache(tmp_path)
    cache.store(b"\xab\xcd", source_map)
    seen: list[bool] = []

    def work() -> None:
        for _ in range(20):
            cache.store(b"\xab\xcd", source_map)
            loaded = cache.load(b"\xab\xcd")
            seen.append(loaded is not None)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [True] * 120
    assert [path.suffix for path in tmp_path.rglob("*") if path.is_file()] == [".map"]


def test_default_directory_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache_directory() == tmp_path / "slotscope"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert default_cache_directory() == tmp_path / "home" / ".cache" / "slotscope"


def test_symbolizer_needs_numpy_and_nothing_heavier() -> None:
    code = "import sys, symbolize.symbolizer; print([m for m in ('pandas', 'pyarrow', 'scipy', 'rich') if m in sys.modules])"
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ).stdout.strip() == "[]"


SYMBOLS = SymbolNames(
    address=np.array([0x1000, 0x1010, 0x2000], np.uint64),
    name=np.array([0, -1, 1], np.int32),
    strings=make_pool(["_Z1fi", "größe"]),
    origin=np.array([4096, 7], np.int64),
)


def test_stored_symbols_come_back_equal(tmp_path: Path) -> None:
    cache = SymbolCache(tmp_path)
    assert cache.load_symbols(b"\x01\x02") is None
    assert cache.store_symbols(b"\x01\x02", SYMBOLS)
    assert plain(cache.load_symbols(b"\x01\x02")) == plain(SYMBOLS)
    assert not cache.store_symbols(b"", SYMBOLS)


@given(st.data())
def test_any_damaged_byte_of_the_symbols_makes_them_absent(data: st.DataObject) -> None:
    content = bytearray(b"".join(encode_symbols(SYMBOLS)))
    position = data.draw(st.integers(0, len(content) - 1))
    content[position] ^= data.draw(st.integers(1, 255))
    assert decode_symbols(bytes(content)) is None


@pytest.mark.parametrize(
    "wrong",
    [
        replace(SYMBOLS, name=np.array([0, -1, 2], np.int32)),
        replace(SYMBOLS, name=np.array([0, -2, 1], np.int32)),
        replace(SYMBOLS, name=np.array([0, 1], np.int32)),
        replace(SYMBOLS, strings=StringPool(SYMBOLS.strings.data, np.array([0, 9, 5], np.int64))),
        replace(SYMBOLS, strings=StringPool(SYMBOLS.strings.data, np.array([0, 5, 900], np.int64))),
        replace(SYMBOLS, strings=StringPool(SYMBOLS.strings.data, np.zeros(0, np.int64))),
    ],
)
def test_symbols_with_rows_outside_of_their_table_are_refused(wrong: SymbolNames) -> None:
    assert decode_symbols(b"".join(encode_symbols(wrong))) is None
