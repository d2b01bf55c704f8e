"""Search for binaries and debug files in directories made for the purpose; the kernel's and the vDSO's identity."""

from __future__ import annotations

import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from profiler.model.dso import Dso, DsoKind
from profiler.model.symbols import NO_CAVEATS, FileCaveats
from support.elf_programs import compile_program, load_image, system_library, tool_output
from symbolize.elf.image import ElfImage
from symbolize.elf.symbol_table import parse_symbol_table
from symbolize.image_file import open_image
from symbolize.kallsyms import parse_kallsyms
from symbolize.locate import Locator, SearchPaths, own_vdso, running_kernel_build_id, running_kernel_symbols
from symbolize.root_directory import RootDirectory

SOURCE = "__attribute__((noinline)) int twice(int x) { return 2 * x; }\nint main(int c, char** v) { return twice(c); }\n"


def file_dso(path: Path, build_id: bytes = b"") -> Dso:
    return Dso(str(path), build_id, DsoKind.FILE)


def build_id_path(root: Path, build_id: bytes, suffix: str = "") -> Path:
    path = root / ".build-id" / build_id.hex()[:2] / (build_id.hex()[2:] + suffix)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "home"
    directory.mkdir()
    monkeypatch.setenv("HOME", str(directory))
    return directory


@pytest.fixture
def locator(tmp_path: Path, home: Path) -> Locator:
    return Locator(SearchPaths(debug_directories=(tmp_path / "debug",), extra_directories=(tmp_path / "extra",)))


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return compile_program(tmp_path, "twice.c", SOURCE, ["-O1", "-g"])


@pytest.fixture
def split(tmp_path: Path, program: Path) -> tuple[Path, Path]:
    """(stripped program with a debug link, its debug file, still beside it)."""
    debug, stripped = tmp_path / "twice.debug", tmp_path / "stripped"
    tool_output("objcopy", "--only-keep-debug", str(program), str(debug))
    tool_output("objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", str(program), str(stripped))
    return stripped, debug


def test_recorded_path_with_and_without_build_id(locator: Locator, program: Path) -> None:
    build_id = load_image(program).build_id
    for wanted in (b"", build_id):
        found = locator.locate(file_dso(program, wanted))
        assert found.image is not None
        assert (found.image.build_id, found.debug_image, found.status) == (build_id, None, "")
    assert locator.locate(file_dso(program)) is locator.locate(file_dso(program))


def test_a_file_that_no_build_id_vouches_for_is_used_with_a_caveat(locator: Locator, program: Path) -> None:
    os.utime(program, ns=(5, 1_700_000_000_000_000_007))
    assert locator.locate(file_dso(program)).caveats == FileCaveats(str(program), 1_700_000_000_000_000_007)
    assert locator.locate(file_dso(program, load_image(program).build_id)).caveats == NO_CAVEATS
    assert locator.locate(file_dso(program.with_name("gone"))).caveats == NO_CAVEATS


def test_another_build_is_refused_and_both_ids_are_named(locator: Locator, program: Path) -> None:
    found = locator.locate(file_dso(program, b"\xab" * 20))
    assert found.image is None
    assert found.status == f"{program}: build ID {'ab' * 20} recorded, {load_image(program).build_id.hex()} found"
    assert "\n" not in found.status


def test_rebuilt_program_is_found_by_build_id(locator: Locator, program: Path, tmp_path: Path, home: Path) -> None:
    build_id = load_image(program).build_id
    for place in (
        build_id_path(tmp_path / "debug", build_id),
        build_id_path(tmp_path / "extra", build_id),
        home / ".debug" / ".build-id" / build_id.hex()[:2] / build_id.hex()[2:] / "elf",
    ):
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(program, place)
        image = Locator(SearchPaths((tmp_path / "debug",), (tmp_path / "extra",))).image(file_dso(tmp_path / "gone", build_id))
        assert image is not None
        assert image.name == str(place)
        place.unlink()
    assert locator.image(file_dso(tmp_path / "gone", build_id)) is None


def test_extra_directories_and_sysroot(program: Path, tmp_path: Path) -> None:
    build_id = load_image(program).build_id
    recorded = Path("/opt/somewhere/bin/twice")
    (tmp_path / "root" / "opt" / "somewhere" / "bin").mkdir(parents=True)
    shutil.copy(program, tmp_path / "root" / "opt" / "somewhere" / "bin" / "twice")
    for search in (
        SearchPaths(extra_directories=(tmp_path / "root",)),
        SearchPaths(extra_directories=(program.parent,)),
        SearchPaths(sysroot=RootDirectory(tmp_path / "root")),
    ):
        found = Locator(search).locate(file_dso(recorded, build_id))
        assert found.image is not None
        assert found.status == ""


@pytest.mark.parametrize("content", [b"", b"#!/bin/sh\n", b"\x7fELF", bytes(300_000)])
def test_foreign_files_have_a_status(locator: Locator, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "foreign"
    path.write_bytes(content)
    found = locator.locate(file_dso(path))
    assert found.image is None
    assert found.status.startswith(f"{path}: ")


def test_missing_files_directories_and_other_kinds_have_a_status(locator: Locator, tmp_path: Path) -> None:
    assert locator.locate(file_dso(tmp_path / "gone")).status == f"{tmp_path / 'gone'}: no such file"
    assert "no such file (build ID 0102)" in locator.locate(file_dso(tmp_path / "gone", b"\1\2")).status
    assert locator.locate(file_dso(tmp_path)).image is None
    assert locator.locate(Dso("[kernel]", b"", DsoKind.KERNEL)).status == "[kernel] is not a file"


def test_unreadable_file_has_a_status(locator: Locator, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    assert locator.locate(file_dso(program)).status == f"{program}: Permission denied"


def test_debug_file_by_build_id(locator: Locator, split: tuple[Path, Path], tmp_path: Path) -> None:
    stripped, debug = split
    build_id = load_image(stripped).build_id
    debug.rename(build_id_path(tmp_path / "debug", build_id, ".debug"))
    found = locator.locate(file_dso(stripped, build_id))
    assert found.image is not None
    assert found.debug_image is not None
    assert found.status == ""
    table = parse_symbol_table(found.debug_image)
    assert "twice" in [table.name(row) for row in range(len(table))]


@pytest.mark.parametrize("place", [".", ".debug", "../debug{directory}"])
def test_debug_link_in_the_three_usual_directories(
    locator: Locator, split: tuple[Path, Path], tmp_path: Path, place: str
) -> None:
    stripped, debug = split
    target = tmp_path / "debug" / str(tmp_path).lstrip("/") if "{" in place else tmp_path / place
    target.mkdir(parents=True, exist_ok=True)
    debug.rename(target / debug.name)
    found = locator.locate(file_dso(stripped))
    assert found.debug_image is not None
    assert found.debug_image.name == str(target.resolve() / debug.name)


def test_debug_file_of_another_build_is_refused(locator: Locator, split: tuple[Path, Path], tmp_path: Path) -> None:
    stripped, debug = split
    other = compile_program(tmp_path, "other.c", SOURCE + "int more;\n", ["-O0", "-g"])
    tool_output("objcopy", "--only-keep-debug", str(other), str(debug))
    found = locator.locate(file_dso(stripped))
    assert found.image is not None
    assert found.debug_image is None
    assert load_image(other).build_id.hex() in found.status
    assert load_image(stripped).build_id.hex() in found.status


def test_debug_file_with_a_wrong_checksum_is_refused(locator: Locator, tmp_path: Path) -> None:
    program = compile_program(tmp_path, "plain.c", SOURCE, ["-g", "-Wl,--build-id=none"])
    debug, stripped = tmp_path / "plain.debug", tmp_path / "stripped"
    tool_output("objcopy", "--only-keep-debug", str(program), str(debug))
    tool_output("objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", str(program), str(stripped))
    assert locator.locate(file_dso(stripped)).debug_image is not None
    debug.write_bytes(debug.read_bytes() + b"changed")
    found = Locator(SearchPaths((), ())).locate(file_dso(stripped))
    assert found.debug_image is None
    assert "checksum" in found.status


def test_debug_link_to_itself_is_not_followed(locator: Locator, program: Path, tmp_path: Path) -> None:
    itself = tmp_path / "itself"
    shutil.copy(program, itself)
    tool_output("objcopy", "--strip-all", f"--add-gnu-debuglink={itself}", str(program), str(tmp_path / "copy"))
    (tmp_path / "copy").rename(itself)
    found = locator.locate(file_dso(itself))
    assert found.debug_image is None
    assert found.status.startswith(f"{itself}: stripped")


def test_debug_file_alone_is_offered_when_the_binary_is_gone(
    locator: Locator, split: tuple[Path, Path], tmp_path: Path
) -> None:
    stripped, debug = split
    build_id = load_image(stripped).build_id
    shutil.copy(debug, build_id_path(tmp_path / "debug", build_id, ".debug"))
    found = locator.locate(file_dso(tmp_path / "gone", build_id))
    assert found.image is None
    assert found.debug_image is not None
    assert "no such file" in found.status


def test_vdso_is_this_kernel_s(locator: Locator) -> None:
    own = own_vdso()
    if own is None:
        pytest.skip("this process has no readable vDSO")
    names = parse_symbol_table(own)
    assert "clock_gettime" in {names.name(row).removeprefix("__vdso_") for row in range(len(names))}
    for build_id in (b"", own.build_id):
        image = locator.image(Dso("[vdso]", build_id, DsoKind.VDSO))
        assert image is not None
        assert bytes(image.data) == bytes(own.data)
    found = locator.locate(Dso("[vdso]", b"\xcd" * 20, DsoKind.VDSO))
    assert found.image is None
    assert "cd" * 20 in found.status
    assert own.build_id.hex() in found.status


def test_running_kernel_is_recognised_by_build_id() -> None:
    build_id = running_kernel_build_id()
    text = parse_kallsyms(Path("/proc/kallsyms").read_bytes())
    if not build_id or text is None:
        pytest.skip("kernel notes or addresses are hidden here")
    start = text.address("_text")
    assert start
    found = running_kernel_symbols(build_id, "", start)
    assert found is not None
    assert found.names(np.array([start], np.uint64))[0]
    assert running_kernel_symbols(build_id, "another release", 0) is not None
    assert running_kernel_symbols(b"\xee" * 20, os.uname().release, start) is None
    assert running_kernel_symbols(build_id, "", start + 0x200000) is None  # the same kernel before a reboot
    assert running_kernel_symbols(b"", os.uname().release, start) is not None
    assert running_kernel_symbols(b"", os.uname().release, start + 0x200000) is None
    assert running_kernel_symbols(b"", "5.10.0-1-other", 0) is None
    assert running_kernel_symbols(b"", "", start) is None
    locator = Locator()
    assert locator.kernel_symbols(build_id, "", 0) is locator.kernel_symbols(build_id, "", 0)


def test_programs_that_were_let_go_are_closed_and_found_again(locator: Locator, tmp_path: Path) -> None:
    """Files of 256 KiB and more are mapped, each with a descriptor."""
    library = system_library("libm.so.6")
    assert library.stat().st_size >= 1 << 18
    copies = [Path(shutil.copy(library, tmp_path / f"plugin-{number}.so")) for number in range(20)]
    before = len(os.listdir("/proc/self/fd"))
    first = locator.locate(file_dso(copies[0]))
    for copy in copies[1:]:
        locator.locate(file_dso(copy))
        assert locator.locate(file_dso(copies[0])) is first  # asked for again, and so among the last
        locator.let_go(3)
        assert len(os.listdir("/proc/self/fd")) - before <= 3
    again = locator.locate(file_dso(copies[1])).image
    assert again is not None
    assert again.build_id == load_image(library).build_id


def test_what_one_thread_found_stays_when_another_was_slower(
    locator: Locator, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when one window is read and the next one attached: what the one holds open is not lost for the other's look."""
    is_looking, may_go_on = threading.Event(), threading.Event()

    def slow_for_others(path: Path) -> tuple[ElfImage | None, str]:
        if threading.current_thread() is not threading.main_thread():
            is_looking.set()
            may_go_on.wait(timeout=60)
        return open_image(path)

    monkeypatch.setattr("symbolize.locate.open_image", slow_for_others)
    with ThreadPoolExecutor(1) as other:
        slower = other.submit(locator.locate, file_dso(program))
        assert is_looking.wait(timeout=60)
        found = locator.locate(file_dso(program))
        may_go_on.set()
        assert slower.result() is found
    assert locator.locate(file_dso(program)) is found
