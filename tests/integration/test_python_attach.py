"""`slotscope attach --python` on real Python processes, with real py-spy: what it finds, and how it ends."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from profiler.cli.main import main
from profiler.model.capture import Capture
from profiler.model.event import NON_IDLE_SAMPLES
from profiler.store.records import SessionState
from profiler.store.store import open_store
from support.attached_program import wait_for_line
from support.installed_pyspy import needs_pyspy

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "tests" / "workloads" / "python_ratio.py"
RATE_HZ = 200
NAME = f"ratio-{os.getpid()}"


pytestmark = [
    pytest.mark.perf,
    pytest.mark.beside,
    needs_pyspy,
]


@pytest.fixture
def target() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, str(PROGRAM), NAME], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    yield process
    process.stdout.close()
    process.kill()
    process.wait()


@dataclass(frozen=True, slots=True)
class Attached:
    """`slotscope attach`, running."""

    process: subprocess.Popen[bytes]
    log: Path
    out: Path

    def end(self, number: int = 0, code: int = 0) -> str:
        """What it printed; ``number``: the signal that asks for the end."""
        if number:
            self.process.send_signal(number)
        assert self.process.wait(120) == code, self.log.read_text()
        assert "Traceback" not in self.log.read_text()
        return self.out.read_text()


StartAttach = Callable[..., Attached]


@pytest.fixture
def attach(tmp_path: Path) -> Iterator[StartAttach]:
    started: list[Attached] = []

    def start(*arguments: str) -> Attached:
        log, out = tmp_path / f"{len(started)}.err", tmp_path / f"{len(started)}.out"
        command = [sys.executable, "-m", "profiler.cli.main", "--store", str(tmp_path / "store"), "attach", *arguments]
        with log.open("wb") as errors, out.open("wb") as output:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                cwd=ROOT,
                env=dict(os.environ, PYTHONPATH=str(ROOT)),
            )
        started.append(Attached(process, log, out))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.wait()


def captures_of(tmp_path: Path) -> list[Capture]:
    store = open_store(tmp_path / "store", create=False)
    return [store.load(run) for run in store.runs()]


def session_state(tmp_path: Path) -> SessionState:
    (session,) = open_store(tmp_path / "store", create=False).sessions()
    return session.state


def pyspys_of(pid: int) -> list[int]:
    """Running py-spys that record a process."""
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit() and _records(entry, pid)]


def _records(entry: str, pid: int) -> bool:
    try:
        words = Path("/proc", entry, "cmdline").read_bytes()
    except OSError:
        return False
    return b"py-spy\0record\0--pid\0%d\0" % pid in words


def used_s(pid: int) -> float:
    """CPU time that a process has used, from its ticks."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def goes_on(process: subprocess.Popen[bytes]) -> bool:
    """Whether it uses CPU time: nobody left it stopped."""
    before, deadline = used_s(process.pid), time.monotonic() + 20
    while used_s(process.pid) <= before + 0.05 and time.monotonic() < deadline:
        time.sleep(0.02)
    return used_s(process.pid) > before + 0.05


def report_of(selector: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, float]:
    capsys.readouterr()
    assert main(["--store", str(tmp_path / "store"), "report", selector, "--by", "function", "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["unit"] == NON_IDLE_SAMPLES
    return {row["name"].partition(" (")[0]: row["total"] for row in report["rows"]}


@pytest.mark.alone
def test_two_windows_have_the_functions_in_their_ratio(
    target: subprocess.Popen[bytes], attach: StartAttach, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before_s, since = used_s(target.pid), time.monotonic()
    arguments = ("--python", "--duration", "4", "--window", "2", "--frequency", str(RATE_HZ), "--variant", "spied")
    attached = attach("--pid", str(target.pid), *arguments)
    printed = attached.end()
    all_s, passed_s = used_s(target.pid) - before_s, time.monotonic() - since
    captures = captures_of(tmp_path)
    assert [capture.info.identity.round for capture in captures] == [0, 1]
    assert {capture.info.identity.instance for capture in captures} == {f"{NAME}-{target.pid}"}
    assert {capture.info.identity.mode.value for capture in captures} == {"profiled"}
    assert session_state(tmp_path) is SessionState.FINISHED
    wall_s = sum(capture.info.outcome.wall_ns for capture in captures) / 1e9
    cpu_s = sum(capture.info.outcome.user_ns + capture.info.outcome.system_ns for capture in captures) / 1e9
    assert 4.0 <= wall_s < passed_s
    # One thread: it cannot use more than the time that passed, nor more than the kernel charged from before to after.
    assert 0 < cpu_s <= min(wall_s + 0.1, all_s + 0.02)
    for capture in captures:
        assert [event.unit for event in capture.events] == [NON_IDLE_SAMPLES]
        assert [metric.name for metric in capture.info.outcome.metrics] == ["py-spy cpu"]
        assert capture.info.outcome.metrics[0].value > 0
        assert capture.info.perf.frequency_hz == RATE_HZ
        assert capture.info.outcome.failure == ""
        assert capture.info.source == ""
    totals = report_of("spied", tmp_path, capsys)
    counted = sum(len(capture.samples) for capture in captures)
    allowed = 4 * math.sqrt(0.75 * 0.25 / counted) + 0.02
    assert totals["three"] / (totals["three"] + totals["one"]) == pytest.approx(0.75, abs=allowed)
    # py-spy samples at random moments: a count scatters by its root.
    assert counted <= RATE_HZ * wall_s + 5 * math.sqrt(RATE_HZ * wall_s)
    gap = re.search(r"not recorded between windows: ([0-9.]+) ms at most", printed)
    assert gap is not None
    assert 0 < float(gap[1]) < 1000 * (passed_s - wall_s)
    assert "py-spy itself used" in printed
    assert NON_IDLE_SAMPLES in attached.log.read_text()
    assert "gap before it" in attached.log.read_text()
    assert not pyspys_of(target.pid)
    assert list((tmp_path / "store/tmp").iterdir()) == []


@pytest.mark.full
@pytest.mark.usefixtures("perf")
def test_it_is_never_compared_with_a_native_window(
    target: subprocess.Popen[bytes], attach: StartAttach, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    attach("--pid", str(target.pid), "--python", "--native", "--duration", "1", "--variant", "spied").end()
    attach("--pid", str(target.pid), "--call-graph", "fp", "--duration", "1", "--variant", "native").end()
    spied = next(capture for capture in captures_of(tmp_path) if capture.info.identity.variant == "spied")
    assert spied.info.perf.call_graph == "python+native"
    assert any(".so" in dso.path or "python" in Path(dso.path).name for dso in spied.dsos)
    assert main(["--store", str(tmp_path / "store"), "compare", "native", "spied"]) == 1
    error = capsys.readouterr().err
    assert NON_IDLE_SAMPLES in error
    assert "cpu-clock in ns" in error


@pytest.mark.alone
def test_asked_to_end_early(target: subprocess.Popen[bytes], attach: StartAttach, tmp_path: Path) -> None:
    """The window under way is kept, and the exit code says that it was not all."""
    attached = attach("--pid", str(target.pid), "--python", "--duration", "60", "--window", "30")
    wait_for_line(attached.log, "; windows of 30 s")
    time.sleep(0.7)
    printed = attached.end(signal.SIGINT, 130)
    assert "ended as asked; 1 window" in printed
    (capture,) = captures_of(tmp_path)
    assert len(capture.samples) > 0
    assert capture.info.outcome.failure == ""
    assert any("in place of 30 s: the end was asked for" in note for note in capture.quality.notes)
    assert session_state(tmp_path) is SessionState.INTERRUPTED
    assert not pyspys_of(target.pid)
    assert goes_on(target)


@pytest.mark.alone
def test_sigterm_without_a_duration_is_the_usual_end(
    target: subprocess.Popen[bytes], attach: StartAttach, tmp_path: Path
) -> None:
    attached = attach("--comm", NAME.replace("ratio", "rat.o"), "--python", "--window", "30")
    wait_for_line(attached.log, "; windows of 30 s")
    time.sleep(0.7)
    attached.end(signal.SIGTERM)
    assert len(captures_of(tmp_path)) == 1
    assert session_state(tmp_path) is SessionState.FINISHED


@pytest.mark.alone
def test_process_that_ends_is_told_of(target: subprocess.Popen[bytes], attach: StartAttach, tmp_path: Path) -> None:
    attached = attach("--pid", str(target.pid), "--python", "--window", "60")
    wait_for_line(attached.log, "; windows of 60 s")
    time.sleep(1)
    target.kill()
    target.wait()
    printed = attached.end()
    assert re.search(rf"process {target.pid} \(.*\) ended; 1 window of ", printed)
    (capture,) = captures_of(tmp_path)
    assert len(capture.samples) > 0
    assert any("in place of 60 s: the process ended" in note for note in capture.quality.notes)
    assert not pyspys_of(target.pid)


@pytest.mark.alone
def test_killed_for_certain(target: subprocess.Popen[bytes], attach: StartAttach, tmp_path: Path) -> None:
    """No py-spy stays behind, the process goes on, and the store has whole windows only."""
    attached = attach("--pid", str(target.pid), "--python", "--window", "1")
    wait_for_line(attached.log, "window 1 ")
    deadline = time.monotonic() + 20
    while not pyspys_of(target.pid) and time.monotonic() < deadline:  # between two windows there is none
        time.sleep(0.005)
    assert pyspys_of(target.pid)
    attached.end(signal.SIGKILL, -signal.SIGKILL)
    deadline = time.monotonic() + 20
    while pyspys_of(target.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not pyspys_of(target.pid)
    assert goes_on(target)
    captures = captures_of(tmp_path)
    assert captures
    assert all(len(capture.samples) for capture in captures)
    assert list((tmp_path / "store/tmp").iterdir()) == []  # opening the store has cleared what was half done


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--pid", "1", "--python", "--call-graph", "fp"), "--call-graph does not go with --python"),
        (("--pid", "1", "--python", "--event", "cycles"), "--event does not go with --python"),
        (("--pid", "1", "--python", "--metrics", "http://h/", "--metric", "a=b"), "--metrics does not go with --python"),
        (("--unit", "x.service", "--python"), "name it by --pid or --comm"),
        (("--pid", "1", "--native"), "--native is for --python"),
        (("--pid", "1", "--python", "--frequency", "5000"), "1000 per second are the most"),
    ],
)
def test_options_that_make_no_sense_are_refused_in_one_line(
    arguments: tuple[str, ...], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--store", str(tmp_path / "store"), "attach", *arguments]) == 2
    error = capsys.readouterr().err
    assert expected in error
    assert error.count("\n") == 1


def test_what_is_not_python_begins_no_session(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sleep = subprocess.Popen(["sleep", "60"])
    try:
        assert main(["--store", str(tmp_path / "store"), "attach", "--pid", str(sleep.pid), "--python"]) == 1
    finally:
        sleep.kill()
        sleep.wait()
    assert f"process {sleep.pid} is not Python" in capsys.readouterr().err
    assert open_store(tmp_path / "store", create=False).sessions() == ()
