"""The C library through its separate debug file, found by build ID."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from profiler.model.dso import Dso, DsoKind
from support.elf_programs import system_library, tool_output
from support.symbol_oracle import compare, symbolized, text_addresses
from symbolize.elf.image import parse_image
from symbolize.locate import Locator
from symbolize.symbolizer import Symbolizer


@pytest.fixture(scope="module")
def libc() -> Path:
    return system_library("libc.so.6")


@pytest.fixture(scope="module")
def libc_debug(libc: Path) -> Path:
    build_id = parse_image(libc.read_bytes(), str(libc)).build_id.hex()
    path = Path("/usr/lib/debug/.build-id") / build_id[:2] / f"{build_id[2:]}.debug"
    if not path.is_file():
        pytest.skip(f"no debug file for {libc}: {path}")
    return path


def test_libc_agrees_with_the_tools_on_its_debug_file(libc: Path, libc_debug: Path) -> None:
    addresses = text_addresses(libc, 2000, seed=7)
    agreement = compare(libc_debug, addresses, symbolized(libc, addresses))
    print(f"libc: {agreement.share:.2%} of {agreement.compared} addresses\n{agreement.report()}")
    assert agreement.compared > 1000
    assert agreement.share >= 0.995


def test_names_come_from_the_debug_files_symbol_table(libc: Path, libc_debug: Path) -> None:
    """``_int_malloc`` is a local symbol: only the debug file's .symtab has it."""
    image = parse_image(libc.read_bytes(), str(libc))
    debug = parse_image(libc_debug.read_bytes(), str(libc_debug))
    address = _symbol_address(libc_debug, "_int_malloc")
    assert debug.build_id == image.build_id
    offsets = image.file_offsets(np.array([address], np.uint64))
    dso = Dso(str(libc), image.build_id, DsoKind.FILE)
    symbols = Symbolizer(Locator(), None).symbolize(dso, offsets, np.zeros(1, np.bool_))
    assert [symbols.functions[int(row)].name for row in symbols.chains.function][-1:] == ["_int_malloc"]
    assert symbols.files[int(symbols.chains.file[-1])].endswith("malloc.c")
    assert symbols.status == ""


def _symbol_address(path: Path, wanted: str) -> int:
    rows = [line.split() for line in tool_output("nm", str(path)).splitlines()]
    return next(int(row[0], 16) for row in rows if len(row) == 3 and row[2] == wanted)
