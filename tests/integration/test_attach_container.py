"""`slotscope attach` on processes with a root directory of their own, against `addr2line` and `nm` on the files in it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from profiler.model.arrays import UInt64Column
from profiler.model.capture import Capture
from profiler.model.dso import UNREAD_BUILD, DsoKind
from profiler.store.debug_tree import debug_directory
from profiler.store.store import open_store
from support import container_root
from support.container_root import Contained, ContainerFiles
from symbolize.symbol_tools import symbol_tools

pytestmark = [pytest.mark.perf, pytest.mark.beside, pytest.mark.usefixtures("perf")]

ROOT = Path(__file__).resolve().parents[2]
MODULES = os.pathsep.join((str(ROOT), *(path for path in sys.path if path.endswith("site-packages"))))
ONE_WINDOW = ("--duration", "1", "--frequency", "997", "--call-graph", "fp")


@pytest.fixture
def files(tmp_path: Path) -> ContainerFiles:
    if os.geteuid() != 0 or any(shutil.which(tool) is None for tool in ("gcc", "objcopy", "addr2line", "nm", "readelf")):
        pytest.skip("needs root, gcc and binutils")
    return container_root.build(tmp_path)


@pytest.fixture
def contained(files: ContainerFiles) -> Iterator[list[Contained]]:
    started: list[Contained] = []
    yield started
    for each in started:
        each.kill()


def slotscope(tmp_path: Path, *arguments: str, prefix: Sequence[str] = (), path: str = "") -> tuple[str, str]:
    """(standard output, standard error) of a command that works."""
    done = subprocess.run(
        [*prefix, sys.executable, "-m", "profiler.cli.main", "--store", str(tmp_path / "store"), *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ, PYTHONPATH=MODULES, PATH=os.pathsep.join(filter(None, (path, os.environ["PATH"])))),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def the_capture(tmp_path: Path) -> Capture:
    store = open_store(tmp_path / "store", create=False)
    (run,) = store.runs()
    return store.load(run)


def names_of_samples(capture: Capture, tmp_path: Path, path_end: str) -> dict[int, str]:
    """The function at each recorded offset of the innermost frames in one file, as a report has it."""
    (row,) = (row for row, dso in enumerate(capture.dsos) if dso.kind == DsoKind.FILE and dso.path.endswith(path_end))
    leaves = capture.stacks.frame[capture.samples.stack]
    frames = np.unique(leaves[capture.frames.dso[leaves] == row])
    offsets = capture.frames.offset[frames]
    tools = symbol_tools((), debug_directory(tmp_path / "store"))
    answer = tools.symbolizer.symbolize(capture.dsos[row], offsets, np.zeros(len(offsets), np.bool_))
    last = answer.chains.start[1:] - 1  # the function that the symbol is of
    functions = [answer.functions[int(answer.chains.function[place])].name for place in last]
    return dict(zip(offsets.tolist(), functions, strict=True))


def link_addresses(file: Path, offsets: UInt64Column) -> list[int]:
    """By what `readelf` says of the segments."""
    listing = subprocess.run(["readelf", "-lW", str(file)], check=True, capture_output=True, text=True).stdout
    rows = re.findall(r"^  LOAD +(0x\w+) (0x\w+) 0x\w+ (0x\w+)", listing, re.MULTILINE)
    segments = [tuple(int(text, 16) for text in row) for row in rows]
    found = [[offset - at + link for at, link, size in segments if at <= offset < at + size] for offset in offsets.tolist()]
    assert all(len(each) == 1 for each in found)
    return [each[0] for each in found]


def addr2line_names(stripped: Path, debug: Path, offsets: Sequence[int]) -> dict[int, str]:
    addresses = link_addresses(stripped, np.array(offsets, np.uint64))
    command = ["addr2line", "-f", "-e", str(debug), *(f"{address:#x}" for address in addresses)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return dict(zip(offsets, printed[::2], strict=True))


def nm_names(file: Path, offsets: Sequence[int]) -> dict[int, set[str]]:
    """All names of the dynamic symbol that holds an offset; addresses of the C library are its offsets in nothing but data."""
    listing = subprocess.run(["nm", "-DS", "--defined-only", str(file)], check=True, capture_output=True, text=True).stdout
    rows = re.findall(r"^(\w+) (\w+) [TtWwi] (\S+)$", listing, re.MULTILINE)
    symbols = [(int(start, 16), int(size, 16), name.partition("@")[0]) for start, size, name in rows]
    addresses = link_addresses(file, np.array(offsets, np.uint64))
    return {
        offset: {name for start, size, name in symbols if start <= address < start + size}
        for offset, address in zip(offsets, addresses, strict=True)
    }


def check_names(files: ContainerFiles, tmp_path: Path, oracle: ContainerFiles) -> None:
    """``oracle``: where the files are now."""
    capture = the_capture(tmp_path)
    program, library = (names_of_samples(capture, tmp_path, name) for name in ("/server", "/libwork.so"))
    known = addr2line_names(oracle.inside(files.program), oracle.program_debug, list(program))
    assert {offset: "??" if name == "random@plt" else name for offset, name in program.items()} == known
    assert library == addr2line_names(oracle.inside(files.library), oracle.library_debug, list(library))
    assert "inside_part" in program.values()
    assert "inside_library_part" in library.values()
    c_library = names_of_samples(capture, tmp_path, "/libc.so.6")
    assert "random" in c_library.values()
    exported = nm_names(oracle.inside(files.c_library), list(c_library))
    assert [name for offset, name in c_library.items() if exported[offset] and name not in exported[offset]] == []
    recorded = {Path(dso.path).name: dso.build_id.hex() for dso in capture.dsos if dso.kind == DsoKind.FILE}
    for path in (files.program, files.library, files.c_library):
        assert recorded[path.name] == container_root.build_id_of(oracle.inside(path))
        assert recorded[path.name] != container_root.build_id_of(path)


def moved(files: ContainerFiles, tmp_path: Path) -> ContainerFiles:
    """The container's root directory under a name that nobody knows."""
    return at(files, files.root.rename(tmp_path / "aside"))


def at(files: ContainerFiles, root: Path) -> ContainerFiles:
    debug = [root / path.relative_to(files.root) for path in (files.program_debug, files.library_debug)]
    return replace(files, root=root, program_debug=debug[0], library_debug=debug[1])


def test_a_container_while_it_runs_and_when_it_is_gone(
    files: ContainerFiles, contained: list[Contained], tmp_path: Path
) -> None:
    contained.append(container_root.start(files))
    docker = tmp_path / "bin/docker"
    docker.parent.mkdir()
    docker.write_text(f"#!/bin/sh\necho {contained[0].pid}\n")
    docker.chmod(0o755)
    printed, told = slotscope(tmp_path, "attach", "--container", "node", *ONE_WINDOW, path=str(docker.parent))
    assert "--debug-dir" not in printed
    assert "cannot be read" not in told
    check_names(files, tmp_path, files)
    contained[0].kill()
    check_names(files, tmp_path, moved(files, tmp_path))
    report = json.loads(slotscope(tmp_path, "report", "last", "--by", "symbol", "--format", "json")[0])
    names = {row["name"]: row["samples"] for row in report["rows"]}
    assert names["inside_part"] + names["inside_library_part"] > 0.3 * sum(names.values())
    assert not any("host" in name for name in names)


def test_a_program_on_an_overlay_that_ends_by_itself(files: ContainerFiles, contained: list[Contained], tmp_path: Path) -> None:
    """perf asks for build IDs when it ends, finds no process, and takes those of the host's files."""
    lower = tmp_path / "lower"
    files.root.rename(lower)
    upper, work = tmp_path / "upper", tmp_path / "work"
    for each in (files.root, upper, work):
        each.mkdir()
    below = at(files, lower)
    contained.append(container_root.start(files, "2.5", layers=(lower, upper, work)))
    printed, _ = slotscope(tmp_path, "attach", "--pid", str(contained[0].pid), "--window", "30", *ONE_WINDOW[2:])
    assert "ended" in printed
    check_names(files, tmp_path, below)


@pytest.mark.full
def test_one_path_on_the_host_and_in_a_container_of_its_child(files: ContainerFiles, tmp_path: Path) -> None:
    """Both programs run below one shell: each keeps its own build, and only the shell's root directory gives names."""
    both = f"{files.enter} {files.root} -- {files.program} & {files.program} & wait"
    shell = subprocess.Popen(["sh", "-c", both], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert shell.stdout is not None
        lines = [shell.stdout.readline() for _ in range(3)]
        assert lines.count(b"ready\n") == 2
        slotscope(tmp_path, "attach", "--pid", str(shell.pid), *ONE_WINDOW)
    finally:
        os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()
        shell.stdout.close()
    capture = the_capture(tmp_path)
    recorded = {dso.build_id.hex() for dso in capture.dsos if dso.path == str(files.program)}
    assert recorded == {container_root.build_id_of(path) for path in (files.program, files.inside(files.program))}
    report = json.loads(slotscope(tmp_path, "report", "last", "--by", "symbol", "--format", "json")[0])
    names = {row["name"]: row["samples"] for row in report["rows"]}
    assert names["host_part"] > 0
    assert "inside_part" not in names
    assert any(name.startswith("server+0x") for name in names)


@pytest.mark.full
def test_a_chroot_for_whoever_may_not_enter_it(files: ContainerFiles, contained: list[Contained], tmp_path: Path) -> None:
    """With the capabilities of the agent's unit, which do not let perf enter a mount namespace."""
    contained.append(container_root.start_chroot(files))
    prefix = with_only("perfmon", "sys_ptrace", "dac_read_search", "syslog")
    slotscope(tmp_path, "attach", "--pid", str(contained[0].pid), *ONE_WINDOW, prefix=prefix)
    check_names(files, tmp_path, files)


def with_only(*kept: str) -> list[str]:
    """What runs a program of root with these capabilities alone."""
    if shutil.which("capsh") is None:
        pytest.skip("needs capsh")
    listing = subprocess.run(["capsh", "--print"], check=True, capture_output=True, text=True).stdout
    found = re.search(r"^Bounding set =(\S+)$", listing, re.MULTILINE)
    assert found is not None
    dropped = ",".join(name for name in found[1].split(",") if name.removeprefix("cap_") not in kept)
    return ["capsh", f"--drop={dropped}", "--", "-c", 'exec "$0" "$@"']


@pytest.mark.full
def test_files_that_cannot_be_read(files: ContainerFiles, contained: list[Contained], tmp_path: Path) -> None:
    """The library is closed to others when the program has started: its functions have no names, and not the host's either."""
    contained.append(container_root.start(files))
    files.inside(files.library).chmod(0)
    _, told = slotscope(
        tmp_path, "attach", "--pid", str(contained[0].pid), *ONE_WINDOW, prefix=with_only("perfmon", "sys_ptrace")
    )
    (line,) = (line for line in told.splitlines() if "cannot be read" in line)
    assert f"1 file of process {contained[0].pid} (server) cannot be read in its root directory" in line
    assert str(files.library) in line
    capture = the_capture(tmp_path)
    (library,) = (dso for dso in capture.dsos if dso.path.endswith("/libwork.so"))
    assert library.build_id == UNREAD_BUILD
    assert all("+0x" in name for name in names_of_samples(capture, tmp_path, "/libwork.so").values())
