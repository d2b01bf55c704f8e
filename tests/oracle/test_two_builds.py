"""The same source built twice: names differ in what compilers make up, keys do not."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from support import symbol_programs
from support.elf_programs import load_image, tool_output
from symbolize.elf.symbol_table import parse_symbol_table
from symbolize.function_key import function_key


def code_symbols(program: Path) -> set[str]:
    """Raw names, by nm."""
    rows = [line.split() for line in tool_output("nm", "--defined-only", str(program)).splitlines()]
    return {row[-1] for row in rows if row[-2] in ("t", "T", "w", "W")}


def keys(names: set[str]) -> set[str]:
    return {function_key(name).key for name in names}


@pytest.mark.parametrize("mangling", [(), ("-C", "symbol-mangling-version=v0")], ids=["default", "v0"])
def test_rust_builds_with_other_hashes(mangling: tuple[str, ...], tmp_path: Path) -> None:
    names = []
    for metadata in ("one", "two"):
        folder = tmp_path / metadata
        folder.mkdir()
        options = ("-C", "opt-level=2", "-C", f"metadata={metadata}", *mangling)
        names.append(code_symbols(symbol_programs.build_rust(folder, options)))
    assert len(names[0] - names[1]) > 10
    assert keys(names[0] - names[1]) == keys(names[1] - names[0])


def test_clones_of_functions_have_the_key_of_their_origin(tmp_path: Path) -> None:
    """Optimization levels make different clones (``.isra.0``, ``.cold``, ``.part.0``, ``.constprop.0``)."""
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    source = tmp_path / "clones.cpp"
    source.write_text(
        """
        #include <stdexcept>
        static __attribute__((noinline)) int sum(const int *p, int n, int scale) {
            if (n > 100) throw std::runtime_error("much");
            int s = 0;
            for (int i = 0; i < n; i++) s += p[i] * scale;
            return s;
        }
        int main(int argc, char **) { int all[] = {argc, 2, 3}; return sum(all, argc, 7) + sum(all, argc + 1, 7); }
        """
    )
    found = {}
    for level in ("-O0", "-O2"):
        program = tmp_path / f"clones{level}"
        subprocess.run(["g++", level, str(source), "-o", str(program)], check=True, capture_output=True)
        found[level] = {name for name in code_symbols(program) if "sum" in name}
    assert any("." in name for name in found["-O2"])
    assert keys(found["-O2"]) == keys(found["-O0"]) == {"sum"}
    table = parse_symbol_table(load_image(tmp_path / "clones-O2"))
    assert found["-O2"] <= {table.name(row) for row in range(len(table))}
