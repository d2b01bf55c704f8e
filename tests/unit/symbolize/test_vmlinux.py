"""A kernel's own file gives names for recordings of it, wherever the boot loader had put it."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from support.elf_programs import compile_program, load_image, tool_output
from symbolize.locate import Locator, SearchPaths

SOURCE = """
__asm__(".text\\n.globl _text\\n_text:\\n.globl _stext\\n_stext:\\n");
__attribute__((noinline)) int schedule_in(int x) { return x + 2; }
int _start(int x) { return schedule_in(x); }
"""
LINKED_AT = 0xFFFFFFFF81000000
MOVED_BY = 0x1E200000
RELEASE = "6.9.1-test"


@pytest.fixture
def vmlinux(tmp_path: Path) -> Path:
    options = ["-O1", "-g", "-ffreestanding", "-nostdlib", "-static", "-no-pie", "-fno-pie", "-mcmodel=kernel"]
    return compile_program(tmp_path, "kernel.c", SOURCE, [*options, "-Wl,--build-id=sha1", f"-Wl,-Ttext={LINKED_AT:#x}"])


def runtime(vmlinux: Path, name: str) -> int:
    """Address in memory, by nm."""
    rows = [line.split() for line in tool_output("nm", str(vmlinux)).splitlines()]
    return int(next(row[0] for row in rows if row[2] == name), 16) + MOVED_BY


@pytest.mark.parametrize(
    "place", ["tree/.build-id/{0}/{1}.debug", "tree/boot/vmlinux-{2}", "tree/lib/modules/{2}/vmlinux", "extra/vmlinux"]
)
@pytest.mark.parametrize("is_debug_file", [False, True])
def test_names_of_a_kernel_that_does_not_run_here(vmlinux: Path, tmp_path: Path, place: str, is_debug_file: bool) -> None:
    build_id = load_image(vmlinux).build_id
    target = tmp_path / place.format(build_id.hex()[:2], build_id.hex()[2:], RELEASE)
    target.parent.mkdir(parents=True)
    if is_debug_file:
        tool_output("objcopy", "--only-keep-debug", str(vmlinux), str(target))
    else:
        shutil.copy(vmlinux, target)
    locator = Locator(SearchPaths((tmp_path / "tree",), (tmp_path / "extra",)))
    found = locator.kernel_symbols(build_id, RELEASE, LINKED_AT + MOVED_BY)
    assert found is not None
    addresses = [runtime(vmlinux, "schedule_in"), runtime(vmlinux, "_start") + 1, LINKED_AT + MOVED_BY - 1]
    assert found.names(np.array(addresses, np.uint64)) == ["schedule_in", "_start", ""]
    assert found.modules(np.array(addresses, np.uint64)) == ["", "", ""]
    assert found.address("schedule_in") == addresses[0]


def test_another_kernel_or_one_whose_place_is_unknown_gives_no_names(vmlinux: Path, tmp_path: Path) -> None:
    target = tmp_path / "extra" / f"vmlinux-{RELEASE}"
    target.parent.mkdir()
    shutil.copy(vmlinux, target)
    locator = Locator(SearchPaths((), (tmp_path / "extra",)))
    build_id = load_image(vmlinux).build_id
    assert locator.kernel_symbols(build_id, RELEASE, LINKED_AT) is not None
    assert locator.kernel_symbols(b"\xab" * 20, RELEASE, LINKED_AT) is None
    assert locator.kernel_symbols(b"", RELEASE, LINKED_AT) is None  # the release alone does not tell builds apart
    assert locator.kernel_symbols(build_id, RELEASE, 0) is None
