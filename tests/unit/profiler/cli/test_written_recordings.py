"""Recordings that are written here, through whole commands: which samples count, and what is said of recordings, binaries and
programs that are missing, damaged or foreign: one clear line each, with the exit code that belongs to it."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from profiler.cli.main import main
from support import perf_data_writer as writer
from support.elf_programs import compile_program, load_image, tool_output
from support.perf_data_writer import EventSpec, RecordingWriter, Sample

SOURCE = """
__attribute__((noinline)) int work(int x) { return x * %d + 1; }
__attribute__((noinline)) int idle(int x) { return x - 1; }
int main(int argc, char **argv) { return idle(work(argc)); }
"""
BASE = 0x5555_0000_0000
SAMPLES = 6
PERIOD = 1000


@dataclass(frozen=True, slots=True)
class Program:
    """A binary as it was when it was recorded.  ``functions``: runtime addresses by name."""

    path: Path
    build_id: str
    functions: dict[str, int]


def built(directory: Path, factor: int = 3) -> Path:
    return compile_program(directory, "prog.c", SOURCE % factor, ["-O1", "-Wl,--build-id=sha1"])


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    monkeypatch.chdir(tmp_path)
    path = built(tmp_path)
    segment = code_segment(path)
    rows = [line.split() for line in tool_output("nm", str(path)).splitlines()]
    functions = {row[2]: BASE + int(row[0], 16) - segment[1] for row in rows if row[-1] in ("work", "idle", "main")}
    return Program(path, build_id_of(path), functions)


def build_id_of(path: Path) -> str:
    found = re.search(r"Build ID: ([0-9a-f]+)", tool_output("readelf", "-n", str(path)))
    assert found is not None
    return found[1]


def code_segment(path: Path) -> tuple[int, int]:
    """(offset in the file, link address) of the program's code."""
    segment = next(segment for segment in load_image(path).load_segments if segment.is_executable)
    return segment.file_offset, segment.link_address


def content_of(program: Program) -> RecordingWriter:
    """``SAMPLES`` samples in work, called by main."""
    build_id = bytes.fromhex(program.build_id)
    content = RecordingWriter(features={2: writer.build_id_entry(os.fsencode(program.path), build_id)})
    content.comm(10, 10, b"prog")
    content.mmap2(10, BASE, 0x1000, code_segment(program.path)[0], os.fsencode(program.path))
    chain = (writer.USER_MARKER, program.functions["work"], program.functions["main"] + 1)
    for number in range(SAMPLES):
        content.sample(Sample(ip=chain[1], time=5 + number, period=PERIOD, chain=chain))
    return content


def written(program: Program, name: str = "run.data") -> str:
    Path(name).write_bytes(content_of(program).build())
    return name


def slotscope(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main(list(arguments))
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def report(capsys: pytest.CaptureFixture[str], recording: str, *options: str) -> dict[str, Any]:
    code, out, err = slotscope(capsys, "report", recording, "--by", "function", "--format", "json", *options)
    assert (code, err) == (0, "")
    document: dict[str, Any] = json.loads(out)
    return document


def weights(document: dict[str, Any]) -> dict[str, int]:
    return {row["name"]: row["self"] for row in document["rows"] if row["self"]}


def lines_about_symbols(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, recording: str) -> list[str]:
    """What a wide terminal shows between the warning and the way out."""
    monkeypatch.setenv("COLUMNS", "400")
    code, out, err = slotscope(capsys, "report", recording)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("WARNING: 100.0 % of the weight"))
    end = next(number for number, line in enumerate(lines) if "What to do: " in line and "--debug-dir" in line)
    assert start < end < next(number for number, line in enumerate(lines) if line.startswith("category "))
    return lines[start + 1 : end]


def test_a_good_recording_has_no_such_line(program: Program, capsys: pytest.CaptureFixture[str]) -> None:
    document = report(capsys, written(program))
    assert weights(document) == {"work": SAMPLES * PERIOD}
    assert {warning["code"] for warning in document["warnings"]} <= {"few-samples", "rootless"}


def test_missing_binary(program: Program, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    recording = written(program)
    program.path.unlink()
    (line,) = lines_about_symbols(capsys, monkeypatch, recording)
    assert line.endswith(f"{program.path} (build ID {program.build_id}): no such file")


def test_stripped_binary(program: Program, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    recording = written(program)
    tool_output("strip", str(program.path))
    (line,) = lines_about_symbols(capsys, monkeypatch, recording)
    assert f"{program.path} (build ID {program.build_id}): stripped" in line


def test_wrong_build_id(program: Program, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    recording = written(program)
    found = build_id_of(built(program.path.parent, factor=5))
    assert found != program.build_id
    (line,) = lines_about_symbols(capsys, monkeypatch, recording)
    assert line.endswith(f"{program.path} (build ID {program.build_id}): build ID {program.build_id} recorded, {found} found")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty file"),
        (b"PERFILE2", "cut short"),
        (b"PERFILE2" + writer.words(104) + bytes(40), "the file ends before"),
        (b"stack 1\n", "text file"),
    ],
    ids=["empty", "magic alone", "header cut", "folded stacks"],
)
def test_files_that_hold_no_recording(
    content: bytes, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.data").write_bytes(content)
    for command in (["report", "x.data"], ["compare", "x.data", "x.data"], ["export", "x.data", "-o", "x.folded"]):
        code, out, err = slotscope(capsys, *command)
        assert (code, out) == (1, "")
        assert re.fullmatch(rf"slotscope: error: x\.data: [^\n]*{reason}[^\n]*\n", err)
    assert not Path("x.folded").exists()


@pytest.mark.parametrize("is_finished", [True, False])
def test_a_recording_that_ends_in_the_middle(program: Program, is_finished: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """Truncated afterwards, or never finished by perf, which then did not write the size of the data either."""
    content = content_of(program)
    whole = content.build() if is_finished else content.build(data_size=0)
    end_of_data = whole.index(content.records[-1]) + len(content.records[-1])
    Path("cut.data").write_bytes(whole[: end_of_data - 8])
    document = report(capsys, "cut.data")
    assert document["total"] == (SAMPLES - 1) * PERIOD
    (warning,) = [warning for warning in document["warnings"] if warning["code"] == "unfinished"]
    assert warning["message"] == "1 of 1 recordings end in the middle; the readable part was used"
    assert document["quality"]["status"] in ("warn", "failed")


def test_lost_samples_fail_the_quality_and_the_run_stays_in(program: Program, capsys: pytest.CaptureFixture[str]) -> None:
    content = content_of(program)
    content.lost(3)
    content.lost(4)
    Path("lossy.data").write_bytes(content.build())
    document = report(capsys, "lossy.data")
    assert document["total"] == SAMPLES * PERIOD
    assert (document["quality"]["status"], document["quality"]["runs"]) == ("failed", 1)
    (message,) = [warning["message"] for warning in document["warnings"] if warning["code"] == "lost-samples"]
    assert message == f"7 samples were lost while recording ({SAMPLES} were kept)"


@pytest.fixture
def shared_directory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory that other users can look into, as they cannot into those of ``tmp_path``."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        monkeypatch.chdir(name)
        yield Path(name)
        monkeypatch.undo()


@contextmanager
def without_privileges() -> Iterator[None]:
    """Root may read everything: as another user, then."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


def test_a_recording_without_permission(program: Program, shared_directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """perf run by root leaves files that nobody else may read."""
    recording = written(program)
    report(capsys, recording)  # whatever is imported for it is there before the change of user
    Path(recording).chmod(0)
    with without_privileges():
        code, out, err = slotscope(capsys, "report", recording)
    assert (code, out) == (1, "")
    assert err == f"slotscope: error: {recording}: cannot be opened: Permission denied\n"


def test_a_store_without_permission(program: Program, shared_directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is named where it is needed, and no reason to refuse files."""
    recording = written(program)
    expected = weights(report(capsys, recording))
    store = Path(".slotscope")
    store.mkdir()
    (store / "catalog.sqlite").touch()
    store.chmod(0)
    with without_privileges():
        code, out, err = slotscope(capsys, "report", "base")
        found = weights(report(capsys, recording))
    store.chmod(0o755)
    assert (code, out) == (1, "")
    assert err == "slotscope: error: .slotscope/catalog.sqlite: Permission denied\n"
    assert sum(found.values()) == sum(expected.values())


@pytest.mark.parametrize("selector", ["nothing.data", "variant:base", "session:last-week", "file:x.data", "nowhere/*.data"])
def test_unknown_selectors(
    selector: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    name = re.escape(selector.removeprefix("file:").removeprefix("variant:").removeprefix("session:"))
    for command in (["report"], ["compare", selector], ["explain", "--function", "x"]):
        code, out, err = slotscope(capsys, *command, selector)
        assert (code, out) == (2, "")
        assert re.fullmatch(rf"slotscope: error: [^\n]*{name}[^\n]*\n", err)


FAKE_PERF = """#!/bin/sh
case "$1" in version | --version) echo "perf version 6.1.0"; exit 0 ;; esac
echo 'Error:' >&2
echo 'Access to performance monitoring and observability operations is limited.' >&2
exit 255
"""


def commands_on_path(directory: Path, monkeypatch: pytest.MonkeyPatch, perf: str = "") -> None:
    directory.mkdir()
    for name in ("true", "sh", "echo"):
        (directory / name).symlink_to(str(shutil.which(name)))
    if perf:
        (directory / "perf").write_text(perf)
        (directory / "perf").chmod(0o755)
    monkeypatch.setenv("PATH", str(directory))


@pytest.mark.parametrize(
    ("perf", "message"),
    [("", "perf is not installed: install linux-perf"), (FAKE_PERF, r"sysctl kernel\.perf_event_paranoid=1")],
    ids=["absent", "refused"],
)
def test_recording_without_perf_or_without_permission(
    perf: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commands_on_path(tmp_path / "bin", monkeypatch, perf)
    code, out, err = slotscope(capsys, "--store", str(tmp_path / "store"), "record", "--", "true")
    assert (code, out) == (1, "")
    (line,) = [line for line in err.splitlines() if line.startswith("slotscope: error: ")]
    assert re.search(message, line)


@pytest.mark.parametrize(
    ("arguments", "message", "last_line"),
    [
        (["--", "no-such-program"], "no-such-program: not found in PATH", []),
        (["--", "sh", "-c", "echo the reason; exit 7"], "sh: the first run failed: exit code 7", ["the reason"]),
        (["--metric", "t=nowhere (.*)", "--", "echo", "hello"], "metric 't' (nowhere (.*)) matches nothing", ["hello"]),
    ],
)
def test_programs_that_fail_without_perf(
    arguments: list[str],
    message: str,
    last_line: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Plain runs need no perf, and fail in the same words."""
    commands_on_path(tmp_path / "bin", monkeypatch)
    store = ["--store", str(tmp_path / "store")]
    code, out, err = slotscope(capsys, *store, "record", "--profile", "none", "--runs", "3", *arguments)
    assert (code, out) == (1, "")
    (line,) = [line for line in err.splitlines() if line.startswith("slotscope: error: ")]
    assert message in line
    assert line.count("its last line: ") == len(last_line)
    code, shown, _ = slotscope(capsys, *store, "show")
    assert code == (0 if last_line else 2)
    assert all(f"; its last line: {text}\n" in shown for text in last_line)
    assert slotscope(capsys, *store, "record", "--profile", "none", "--runs", "2", "--", "true")[0] == 0


def test_whose_samples_a_phase_admits(program: Program, capsys: pytest.CaptureFixture[str]) -> None:
    """work on thread 10 from time 10 to 30; thread 11 of its process and process 20 are in idle, inside and outside."""
    content = RecordingWriter(features={2: writer.build_id_entry(os.fsencode(program.path), bytes.fromhex(program.build_id))})
    for pid in (10, 20):
        content.comm(pid, pid, b"prog")
        content.mmap2(pid, BASE, 0x1000, code_segment(program.path)[0], os.fsencode(program.path))
    drawn = [(10, 10, "work", 10), (10, 10, "work", 20), (10, 10, "work", 30), (10, 11, "idle", 15), (10, 11, "idle", 90)]
    drawn += [(20, 20, "idle", 5), (20, 20, "idle", 12), (20, 20, "idle", 14)]
    for pid, tid, function, time in drawn:
        address = program.functions[function]
        content.sample(Sample(ip=address, pid=pid, tid=tid, time=time, chain=(writer.USER_MARKER, address)))
    Path("two.data").write_bytes(content.build())
    expected = {"thread": {"work": 3}, "process": {"work": 3, "idle": 1}, "host": {"work": 3, "idle": 3}}
    for scope, samples in expected.items():
        found = weights(report(capsys, "two.data", "--phase", "^work$", "--phase-scope", scope))
        assert found == {name: number * PERIOD for name, number in samples.items()}


def test_one_of_several_events_is_chosen(program: Program, capsys: pytest.CaptureFixture[str]) -> None:
    """PERF_TYPE_SOFTWARE: config 0 is cpu-clock, 2 page-faults."""
    content = RecordingWriter([EventSpec(config=0), EventSpec(config=2)])
    content.comm(10, 10, b"prog")
    content.mmap2(
        10, BASE, 0x1000, code_segment(program.path)[0], os.fsencode(program.path), build_id=bytes.fromhex(program.build_id)
    )
    address = program.functions["work"]
    for row in (0, 0, 0, 0, 1, 1):
        content.sample(Sample(ip=address, period=1, chain=(writer.USER_MARKER, address)), row)
    Path("events.data").write_bytes(content.build())
    code, _, err = slotscope(capsys, "report", "events.data", "--event", "cycles")
    assert code == 2
    assert re.fullmatch(r"slotscope: error: [^\n]*no single event 'cycles'; it holds: cpu-clock, page-faults\n", err)
    for options, event, count, unit in (
        ((), "cpu-clock", 4, "ns"),
        (("--event", "cpu-clock"), "cpu-clock", 4, "ns"),
        (("--event", "page-faults"), "page-faults", 2, "page-faults"),
    ):
        document = report(capsys, "events.data", *options)
        assert (document["event"], document["total"], document["unit"]) == (event, count, unit)


def test_python_page_does_what_it_says(program: Program) -> None:
    written(program, "perf.data")
    page = (Path(__file__).parents[4] / "docs" / "python.md").read_text(encoding="utf-8")
    code = page.split("```python\n")[1].split("```")[0]
    names: dict[str, Any] = {}
    exec(compile(code, "python.md", "exec"), names)
    rows = {row["name"]: row["self"] for row in names["frame"].to_dict("records")}
    assert rows == {"work": SAMPLES * PERIOD, "main": 0}
    columns = "name, label, session, variant, host, round, self, total, samples"
    assert list(names["frame"].columns) == columns.split(", ")
    assert columns in page
