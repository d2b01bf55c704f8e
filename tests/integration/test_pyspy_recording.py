"""py-spy on real Python processes: the shape that the program states comes back within the sampling error."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from collectors.profilers.pyspy import PySpySettings, pyspy_path, start_pyspy
from collectors.profilers.woken_threads import run_times
from profiler.cli.main import main
from profiler.errors import CaptureError
from profiler.model.capture import Capture
from profiler.model.run import CaptureInfo, RunIdentity, RunMode
from profiler.store.records import SessionStart
from profiler.store.store import open_store
from support.installed_pyspy import needs_pyspy

PROGRAM = Path(__file__).resolve().parents[1] / "workloads" / "python_shape.py"
INFO = CaptureInfo(RunIdentity("s", "shape", 0, RunMode.PROFILED))


pytestmark = [
    pytest.mark.perf,
    pytest.mark.beside,
    needs_pyspy,
]


@dataclass(frozen=True)
class Shape:
    process: subprocess.Popen[bytes]
    child: int


@pytest.fixture
def shape() -> Iterator[Shape]:
    process = subprocess.Popen([sys.executable, str(PROGRAM)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    yield Shape(process, int(process.stdout.readline()))
    process.stdin.close()
    process.stdout.close()
    process.wait()


def recorded(settings: PySpySettings, pid: int, directory: Path, seconds: float = 3.0) -> Capture:
    recorder = start_pyspy(settings, pid, directory / "out.json")
    try:
        assert recorder.wait(seconds)
        recorder.stop()
    except BaseException:
        recorder.abort()
        raise
    capture = recorder.finish(INFO)
    assert not recorder.output.exists()
    return capture


def by_thread(capture: Capture) -> dict[str, Counter[str]]:
    """Per thread, samples by the function that `work` called."""
    found: dict[str, Counter[str]] = {}
    for thread, stack in zip(capture.samples.thread.tolist(), capture.samples.stack.tolist(), strict=True):
        rows = capture.frames.symbol[capture.stacks.frames_leaf_first(stack)].tolist()
        names = {capture.strings[row].partition(" (")[0] for row in rows if row >= 0}
        name = capture.strings[capture.threads.thread_name[thread]]
        found.setdefault(name, Counter())[next((each for each in ("three", "one") if each in names), "other")] += 1
    return found


def is_three_quarters(counts: Counter[str]) -> bool:
    """Within four standard errors, and 2 % for the moments between the two."""
    total = counts["three"] + counts["one"]
    return abs(counts["three"] / total - 0.75) < 4 * math.sqrt(0.75 * 0.25 / total) + 0.02


@pytest.mark.alone
def test_functions_threads_and_children_in_their_proportions(shape: Shape, tmp_path: Path) -> None:
    before = run_times(shape.process.pid, with_children=True)
    capture = recorded(PySpySettings(rate_hz=100), shape.process.pid, tmp_path)
    after = run_times(shape.process.pid, with_children=True)
    found = by_thread(capture)
    # Of the threads that only wait, a slow machine may show some of the moments in which py-spy's own pauses woke them.
    busy = {name for name, counts in found.items() if counts.total() > 0.05 * len(capture.samples)}
    assert busy == {"child;of it", "worker"}
    for name, pid in (("worker", shape.process.pid), ("child;of it", shape.child)):
        assert is_three_quarters(found[name]), found[name]
        rows = [row for row in range(len(capture.threads)) if capture.strings[capture.threads.thread_name[row]] == name]
        assert {int(capture.threads.pid[row]) for row in rows} == {pid}
        tid = int(capture.threads.tid[rows[0]])
        # Not idle is running or waiting for a CPU: at least what it ran, at most the time that passed.
        ran_s = (after.ran_ns[pid, tid] - before.ran_ns.get((pid, tid), 0)) / 1e9
        assert sum(found[name].values()) / 100 <= 1.1 * (after.at_s - before.at_s)
        assert sum(found[name].values()) / 100 >= 0.5 * ran_s
    assert capture.info.perf.frequency_hz == 100
    processes = {capture.strings[row] for row in capture.threads.process_name.tolist()}
    assert processes == {f"{Path(sys.executable).name} python_shape.py"}


def test_lines_are_those_of_the_program(shape: Shape, tmp_path: Path) -> None:
    capture = recorded(PySpySettings(follows_children=False), shape.process.pid, tmp_path, 1.0)
    lines = PROGRAM.read_text().splitlines()
    seen = Counter(
        lines[line - 1].strip()
        for dso, line in zip(capture.frames.dso.tolist(), capture.frames.offset.tolist(), strict=True)
        if capture.dsos[dso].path == str(PROGRAM)
    )
    assert {"three()", "spin(3 * STEP_S)"} <= set(seen)
    assert shape.child not in capture.threads.pid.tolist()


def test_native_frames_and_what_their_stacks_may_lack(shape: Shape, tmp_path: Path) -> None:
    capture = recorded(PySpySettings(has_native=True), shape.process.pid, tmp_path, 1.0)
    assert capture.quality.gap_possible > 0
    assert any(".so" in dso.path for dso in capture.dsos)
    assert capture.info.perf.call_graph == "python+native"


def test_a_process_that_ends_meanwhile_is_marked(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, str(PROGRAM)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.readline()
    recorder = start_pyspy(PySpySettings(), process.pid, tmp_path / "out.json")
    recorder.wait(0.7)
    process.stdin.close()
    process.wait()
    process.stdout.close()
    assert recorder.wait(20.0) is False
    capture = recorder.finish(INFO)
    assert "the process ended while it was recorded" in capture.quality.notes
    assert any("are not told from busy ones" in note for note in capture.quality.notes)
    assert capture.quality.samples > 0


def test_what_is_not_python_is_refused(tmp_path: Path) -> None:
    sleep = subprocess.Popen(["sleep", "60"])
    try:
        with pytest.raises(CaptureError, match=f"process {sleep.pid} is not Python"):
            start_pyspy(PySpySettings(), sleep.pid, tmp_path / "out.json")
    finally:
        sleep.kill()
        sleep.wait()


@pytest.mark.parametrize("form", ["raw", "speedscope"])
def test_files_of_py_spy_itself_are_imported_with_its_own_counts(
    shape: Shape, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "file"
    command = [pyspy_path(), "record", "-p", str(shape.process.pid), "-d", "1", "-f", form, "-t", "-s", "-o", str(output)]
    answer = subprocess.run(command, capture_output=True, check=True, text=True)
    samples = int((answer.stdout + answer.stderr).partition("Samples: ")[2].split()[0])
    store = str(tmp_path / "store")
    assert main(["--store", store, "import", f"spied={output}"]) == 0
    capsys.readouterr()
    assert main(["--store", store, "report", "spied", "--by", "function", "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["event"], report["unit"]) == ("py-spy", "samples of non-idle wall time")
    assert report["total"] == samples
    text = output.read_text()
    if form == "raw":
        lines = [line for line in text.splitlines() if "three (python_shape.py" in line]
        counted = sum(int(line.rpartition(" ")[2]) for line in lines)
        assert {row["name"]: row["total"] for row in report["rows"]}["three (python_shape.py)"] == counted


def test_it_is_never_compared_with_cpu_time(shape: Shape, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = open_store(tmp_path / "store", create=True)
    session = store.begin_session(SessionStart("2026-03-01T10:00:00+00:00", "host", ("x",), 0, has_rounds=True))
    capture = recorded(PySpySettings(), shape.process.pid, tmp_path, 0.5)
    store.add(replace(capture, info=replace(INFO, identity=replace(INFO.identity, session=session), perf=capture.info.perf)))
    store.finish_session(session)
    script = tmp_path / "cpu.txt"
    script.write_text("app 7/7 1.000000000: 500500 cpu-clock: \n\t1139 main+0x9 (/opt/app)\n\n")
    assert main(["--store", str(tmp_path / "store"), "compare", "shape", f"cpu={script}"]) == 1
    error = capsys.readouterr().err
    assert "samples of non-idle wall time" in error
    assert "cpu-clock in ns" in error
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    (mixed / "a").write_text("f (a.py:1);g (a.py:2) 4\n")
    (mixed / "b").write_text(script.read_text())
    assert main(["report", str(mixed)]) == 1
    assert "the runs of one arm count different events" in capsys.readouterr().err
