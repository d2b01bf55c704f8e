"""Sessions as an agent makes them: begun at an ordered moment, several at once, ended without a terminal."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from profiler.store.records import SessionState
from profiler.store.store import open_store
from support import attached_program
from support.attached_program import Burner

pytestmark = [pytest.mark.perf, pytest.mark.beside, pytest.mark.usefixtures("perf")]

ROOT = Path(__file__).resolve().parents[2]
WORKER = ROOT / "tests/support/attach_worker.py"
SECOND = 1_000_000_000
# How late a process may be woken on a machine with nothing to spare; an idle one does it in under a millisecond.
LATE_NS = SECOND // 4


@dataclass(frozen=True, slots=True)
class Worker:
    process: subprocess.Popen[str]
    target: Burner

    def results(self, code: int = 0) -> dict[str, list[tuple[object, int]]]:
        """What its observer was told, and when, by kind."""
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        text, errors = self.process.stdout.read(), self.process.stderr.read()
        assert self.process.wait(120) == code, text + errors
        found: dict[str, list[tuple[object, int]]] = {}
        for kind, value, at_ns in map(json.loads, text.splitlines()):
            found.setdefault(kind, []).append((value, at_ns))
        return found


StartWorker = Callable[..., Worker]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    return attached_program.build(tmp_path_factory.mktemp("burner"))


@pytest.fixture
def start(program: Path, tmp_path: Path) -> Iterator[StartWorker]:
    started: list[Worker] = []

    def start(begin_at_ns: int = 0, windows: int = 1, store: str = "store") -> Worker:
        number = len(started)
        target = attached_program.start(program, tmp_path / f"burner-{number}.txt", "forever")
        command = [sys.executable, str(WORKER), str(tmp_path / store), str(target.pid), f"node-{number}"]
        process = subprocess.Popen(
            [*command, str(begin_at_ns), str(windows)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # no terminal
            env=dict(os.environ, PYTHONPATH=os.pathsep.join((str(ROOT), str(ROOT / "tests")))),
        )
        started.append(Worker(process, target))
        return started[-1]

    yield start
    for worker in started:
        with worker.process:
            worker.process.kill()
        worker.target.kill()


@pytest.mark.alone
@pytest.mark.parametrize(("count", "in_s"), [(3, 5), pytest.param(8, 25, marks=pytest.mark.full)])
def test_several_begin_at_the_same_moment(start: StartWorker, tmp_path: Path, count: int, in_s: int) -> None:
    """Processes, each with its own target, in one store: all first windows begin when they were told to."""
    begin_at_ns = time.monotonic_ns() + in_s * SECOND
    workers = [start(begin_at_ns) for _ in range(count)]
    store = open_store(tmp_path / "store", create=True)
    for number, worker in enumerate(workers):
        found = worker.results()
        ((session, attached_ns),) = found["attached"]
        assert attached_ns < begin_at_ns
        ((begun_ns, _),) = found["begun"]
        assert isinstance(begun_ns, int)
        assert 0 <= begun_ns - begin_at_ns < LATE_NS
        (run,) = store.runs(str(session))
        assert [value for value, _ in found["kept"]] == [[session, run.key.number]]
        assert [value for value, _ in found["ended"]] == ["ended after its duration"]
        capture = store.load(run)
        assert (capture.info.identity.variant, capture.info.identity.instance) == ("ordered", f"node-{number}")
        # The samples' clock is the kernel's own.
        times = capture.samples.time_ns
        assert begin_at_ns <= int(times.min())
        assert int(times.max()) < begin_at_ns + SECOND + 2 * LATE_NS
        assert set(np.unique(capture.threads.pid[capture.samples.thread]).tolist()) == {worker.target.pid}


def test_a_moment_that_has_passed(start: StartWorker, tmp_path: Path) -> None:
    """It took the process more than a moment to start."""
    worker = start(time.monotonic_ns() + SECOND // 100)
    ((message, _),) = worker.results(code=1)["refused"]
    assert str(message).startswith("the moment to begin had passed by ")
    late_s = float(str(message).partition("passed by ")[2].partition(" s ")[0])
    assert 0.01 < late_s < 60
    assert open_store(tmp_path / "store", create=False).sessions() == ()


@pytest.mark.parametrize("way", ["SIGTERM", "asked"])
def test_ended_while_it_waits_for_its_moment(start: StartWorker, tmp_path: Path, way: str) -> None:
    worker = start(time.monotonic_ns() + 60 * SECOND)
    deadline = time.monotonic() + 30
    while not (tmp_path / "store/tmp").exists() or not open_store(tmp_path / "store", create=False).sessions():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    if way == "SIGTERM":
        worker.process.send_signal(signal.SIGTERM)
    else:
        assert worker.process.stdin is not None
        worker.process.stdin.close()
    found = worker.results()
    assert [value for value, _ in found["ended"]] == ["ended as asked"]
    assert "begun" not in found
    (session,) = open_store(tmp_path / "store", create=False).sessions()
    assert session.state is SessionState.INTERRUPTED
