"""Facts of binaries that are built as stated; build IDs and shared objects by readelf and ldd."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from profiler.experiment.binaries.binary_fitness import binary_fitness
from profiler.model.fitness import BinaryFitness
from support.elf_programs import compile_program, tool_output
from symbolize.locate import Locator

C = """
static inline __attribute__((always_inline)) int twice(int x) { return x * 2; }
__attribute__((noinline)) int work(int n) { int s = 0; for (int i = 0; i < n; i++) s += twice(i); return s; }
__attribute__((noinline)) int both(int n) { return work(n) + work(n + 1); }
int main(int argc, char **argv) { return both(argc) + (argv == 0); }
"""


def fitness(path: Path) -> BinaryFitness:
    return binary_fitness(path, Locator())


@pytest.mark.parametrize(
    ("options", "detail"),
    [
        (["-g"], "full"),
        (["-g1"], "line-tables"),
        ([], "none"),
        (["-g", "-gsplit-dwarf"], "split"),
        (["-g", "-gdwarf-4"], "full"),
    ],
)
def test_debug_information(tmp_path: Path, options: list[str], detail: str) -> None:
    found = fitness(compile_program(tmp_path, "work.c", C, ["-O2", *options]))
    assert (found.debug_detail, found.symbols_problem, found.problem) == (detail, "", "")


@pytest.mark.parametrize(
    ("debug", "detail"), [("0", "none"), ("line-tables-only", "line-tables"), ("1", "names"), ("2", "full")]
)
def test_debug_information_of_rust(tmp_path: Path, debug: str, detail: str) -> None:
    if shutil.which("rustc") is None:
        pytest.skip("rustc is not installed")
    source = tmp_path / "work.rs"
    source.write_text('mod deep { pub fn f(n: u32) -> u32 { n.wrapping_mul(7) } }\nfn main() { println!("{}", deep::f(3)); }\n')
    program = tmp_path / "work"
    subprocess.run(["rustc", "-C", f"debuginfo={debug}", "-o", str(program), str(source)], check=True, capture_output=True)
    assert fitness(program).debug_detail == detail


def test_build_id_and_objects(tmp_path: Path) -> None:
    program = compile_program(tmp_path, "work.c", C, ["-O2", "-g", "-lm", "-Wl,--no-as-needed", "-lm"])
    found = fitness(program)
    read = re.search(r"Build ID: ([0-9a-f]+)", tool_output("readelf", "-n", str(program)))
    assert read is not None
    assert found.build_id == read[1]
    listed = {line.split()[0] for line in tool_output("ldd", str(program)).splitlines() if "=> /" in line}
    assert {"libc.so.6", "libm.so.6"} == listed
    assert listed <= {each.name for each in found.objects}
    for each in found.objects:
        notes = re.search(r"Build ID: ([0-9a-f]+)", tool_output("readelf", "-n", each.path))
        assert notes is not None
        assert each.build_id == notes[1]


def test_frame_pointers_and_what_auto_takes(tmp_path: Path) -> None:
    static = compile_program(tmp_path, "kept.c", C, ["-O1", "-fno-omit-frame-pointer", "-nostdlib", "-static", "-Wl,-e,main"])
    assert (fitness(static).keeps_frame_pointers, fitness(static).call_graph) == (True, "fp")
    ordinary = fitness(compile_program(tmp_path, "work.c", C, ["-O2"]))
    assert (ordinary.keeps_frame_pointers, ordinary.call_graph) == (False, "dwarf,16384")
    assert ordinary.call_graph_reason == "work does not keep frame pointers"


def test_stripped_files_and_their_debug_files(tmp_path: Path) -> None:
    program = compile_program(tmp_path, "work.c", C, ["-O2", "-g"])
    debug = tmp_path / "work.debug"
    subprocess.run(["objcopy", "--only-keep-debug", str(program), str(debug)], check=True)
    subprocess.run(["strip", str(program)], check=True)
    stripped = fitness(program)
    assert stripped.symbols_problem == f"{program}: stripped, no debug file for build ID {stripped.build_id}"
    assert stripped.debug_detail == "none"
    subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", str(program)], check=True)
    linked = fitness(program)
    assert (linked.symbols_problem, linked.debug_file, linked.debug_detail) == ("", str(debug), "full")


def test_without_a_build_id(tmp_path: Path) -> None:
    assert fitness(compile_program(tmp_path, "work.c", C, ["-Wl,--build-id=none"])).build_id == ""


def of_another_machine(program: Path) -> None:
    """e_machine (elf.h) is at byte 18: AArch64 is 183."""
    data = bytearray(program.read_bytes())
    data[18:20] = (183).to_bytes(2, "little")
    program.write_bytes(data)


def test_what_was_built_for_another_machine(tmp_path: Path) -> None:
    program = compile_program(tmp_path, "work.c", C, ["-g"])
    assert fitness(program).machines == ()
    of_another_machine(program)
    found = fitness(program)
    assert (found.machines[0], found.objects, found.debug_detail) == ("AArch64", (), "full")


def test_debug_information_that_cannot_be_read(tmp_path: Path) -> None:
    program = compile_program(tmp_path, "work.c", C, ["-g"])
    place = re.search(r"\.debug_abbrev +PROGBITS +\w+ (\w+) (\w+)", tool_output("readelf", "-SW", str(program)))
    assert place is not None
    start, size = int(place[1], 16), int(place[2], 16)
    data = bytearray(program.read_bytes())
    data[start : start + size] = b"\xff" * size
    program.write_bytes(data)
    assert fitness(program).debug_detail == "damaged"


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert fitness(tmp_path / "pipe").problem == f"{tmp_path}/pipe: not a file that can be looked at more than once"


def test_what_is_no_elf_file(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("#!/bin/sh\n")
    assert "not an ELF file" in fitness(script).problem
    assert "no such file" in fitness(tmp_path / "gone").problem
    damaged = tmp_path / "damaged"
    damaged.write_bytes(b"\x7fELF" + bytes(60))
    assert str(damaged) in fitness(damaged).problem
