"""Thread roots in libraries whose local symbols are stripped, against the symbols that were there before."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from profiler.model.arrays import Int64Column
from symbolize.elf.image import ElfImage, parse_image
from symbolize.unwind.dso_rules import DsoRules
from symbolize.unwind.rule_rows import RuleRows
from symbolize.unwind.thread_roots import thread_root_functions
from symbolize.unwind.unwinder import Unwinder

LIBRARY = r"""
typedef void *(*routine)(void *);
extern void run(routine, void *);
volatile int sink;
__attribute__((noinline)) static int call_main(int (*main)(void)) { int code = main(); sink += code; return code; }
int exported(void) { sink++; return sink; }
int __libc_start_main(int (*main)(void)) { exported(); int code = call_main(main); sink += code; return code; }
__attribute__((noinline)) static void *start_thread(void *argument) { sink++; ((routine)argument)(0); sink++; return 0; }
__attribute__((noinline)) static int create_thread(void *argument) { run(start_thread, argument); sink++; return sink; }
int pthread_create(void *argument) { int code = create_thread(argument); sink += code; return code; }
__attribute__((noinline)) static void *other(void *argument) { sink++; return argument; }
int uses_other(void) { run(other, 0); sink++; return sink; }
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> tuple[ElfImage, dict[str, int]]:
    """(stripped image, addresses by name from `nm` before stripping)."""
    if not shutil.which("gcc"):
        pytest.skip("gcc is not installed")
    folder = tmp_path_factory.mktemp("roots")
    (folder / "library.c").write_text(LIBRARY)
    command = ["gcc", "-O1", "-fPIC", "-shared", "-fno-optimize-sibling-calls", "library.c", "-o", "library.so"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    table = subprocess.run(["nm", "library.so"], cwd=folder, check=True, capture_output=True, text=True).stdout
    addresses = {
        name: int(value, 16) for value, _, name in (row.split() for row in table.splitlines() if len(row.split()) == 3)
    }
    subprocess.run(["strip", "library.so"], cwd=folder, check=True)
    return parse_image((folder / "library.so").read_bytes(), "library.so"), addresses


def roots_of(image: ElfImage) -> Int64Column:
    return thread_root_functions(image, DsoRules(image, RuleRows()).all_function_starts)


def test_roots_are_the_local_functions_that_start_threads(library: tuple[ElfImage, dict[str, int]]) -> None:
    image, addresses = library
    assert roots_of(image).tolist() == sorted([addresses["call_main"], addresses["start_thread"]])


def test_the_unwinder_knows_places_inside_roots(library: tuple[ElfImage, dict[str, int]]) -> None:
    image, addresses = library
    names = ["call_main", "start_thread", "create_thread", "other", "exported", "pthread_create"]
    offsets = image.file_offsets(np.array([addresses[name] + 6 for name in names], np.uint64))
    asked: list[int] = []

    def image_of(row: int) -> ElfImage | None:
        asked.append(row)
        return image if row == 3 else None

    dso = np.array([3] * len(names) + [5], np.int32)
    inside = Unwinder(image_of).is_thread_entry(dso, np.append(offsets, np.uint64(0x1234)))
    assert inside.tolist() == [True, True, False, False, False, False, False]
    assert sorted(asked) == [3, 5]


def test_a_library_without_those_names_has_none(library: tuple[ElfImage, dict[str, int]], tmp_path: Path) -> None:
    (tmp_path / "plain.c").write_text("int plain(int x) { return x * 3; }")
    subprocess.run(["gcc", "-shared", "-fPIC", "plain.c", "-o", "plain.so"], cwd=tmp_path, check=True)
    assert len(roots_of(parse_image((tmp_path / "plain.so").read_bytes(), "plain.so"))) == 0
