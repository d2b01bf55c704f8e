"""Hours of attaching, as many short windows: what slotscope needs of memory, files, processes and disk does not grow."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from profiler.store.records import SessionState
from profiler.store.store import open_store
from support import attached_program, churning_program
from support.attached_program import wait_for_line

pytestmark = [pytest.mark.perf, pytest.mark.full, pytest.mark.usefixtures("perf")]

ROOT = Path(__file__).resolve().parents[2]
NAME = "slsc-churn"  # not also that of a program of somebody else
# With the default windows of a minute, and one restart a day, the same happens in nine hours, and in five days.
WINDOWS = 540
STARTS = 6
LONGEST_S = 3 * WINDOWS


@dataclass(frozen=True, slots=True)
class Use:
    """What slotscope holds: memory now and the most ever, open files, processes that it started, bytes of half-done work."""

    resident_kb: int
    peak_kb: int
    open_files: int
    processes: int
    scratch_bytes: int


def use_of(pid: int, store: Path) -> Use:
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    tasks = Path(f"/proc/{pid}/task").iterdir()
    children = [child for task in tasks for child in _children(task)]
    return Use(
        int(status["VmRSS"].split()[0]),
        int(status["VmHWM"].split()[0]),
        len(os.listdir(f"/proc/{pid}/fd")),
        len(children),
        # Directories may vanish meanwhile, which os.walk passes over.
        sum(_size(Path(directory, name)) for directory, _, names in os.walk(store / "tmp") for name in names),
    )


def _children(task: Path) -> list[str]:
    try:
        return (task / "children").read_text().split()
    except FileNotFoundError:  # a thread that has just ended
        return []


def _size(path: Path) -> int:
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_size
    return 0


def growth_kb(uses: Sequence[Use]) -> float:
    """Per window: of the resident memory's medians over the second and the last quarter."""
    quarter = len(uses) // 4
    early, late = uses[quarter : 2 * quarter], uses[3 * quarter :]
    grown = statistics.median(use.resident_kb for use in late) - statistics.median(use.resident_kb for use in early)
    # Between the middles of these quarters lie about two of four.
    return grown / (WINDOWS / 2)


def test_nothing_grows_over_many_windows_and_restarts(tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    program, store, log = churning_program.build(tmp_path, NAME), tmp_path / "store", tmp_path / "log"
    options = ("--comm", f"^{NAME}$", "--window", "1", "--variant", "node", "--frequency", "499", "--call-graph", "fp")
    command = [sys.executable, "-m", "profiler.cli.main", "--store", str(store), "attach", *options]
    targets = [attached_program.start(program, tmp_path / "out-0")]
    with log.open("wb") as errors:
        attach = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
    try:
        wait_for_line(log, "; windows of ")
        uses, deadline = [], time.monotonic() + LONGEST_S
        while (windows := log.read_text().count("\nwindow ")) < WINDOWS:
            assert attach.poll() is None, log.read_text()[-2000:]
            assert time.monotonic() < deadline, log.read_text()[-2000:]
            uses.append(use_of(attach.pid, store))
            if windows >= len(targets) * WINDOWS // STARTS:
                targets[-1].kill()
                targets.append(attached_program.start(program, tmp_path / f"out-{len(targets)}"))
            time.sleep(0.5)
        attach.send_signal(signal.SIGINT)
        assert attach.wait(120) == 0, log.read_text()[-2000:]
    finally:
        attach.kill()
        attach.wait()
        for target in targets:
            target.kill()
    tell(uses, tmp_path)
    check_uses(uses)
    check_store(store, [target.pid for target in targets])
    assert "Traceback" not in log.read_text()


def tell(uses: Sequence[Use], directory: Path) -> None:
    """For whoever runs it with -s."""
    most = [max(getattr(use, name) for use in uses) for name in ("peak_kb", "open_files", "processes", "scratch_bytes")]
    stored = sum(_size(path) for path in (directory / "store/captures").rglob("*"))
    print(
        f"\n{WINDOWS} windows, {STARTS} starts of the program: at most {most[0] / 1024:.0f} MiB of memory, {most[1]} open "
        f"files, {most[2]} processes, {most[3] / 1024:.0f} KiB in tmp; memory grew by {growth_kb(uses):.2f} KiB a window "
        f"({uses[len(uses) // 4].resident_kb / 1024:.0f} -> {uses[-1].resident_kb / 1024:.0f} MiB); "
        f"captures take {stored / WINDOWS / 1024:.1f} KiB a window"
    )


def check_uses(uses: Sequence[Use]) -> None:
    assert max(use.peak_kb for use in uses) < 256 * 1024
    # About 4 are the interpreter's lists of free objects, which fill up within a thousand windows, and pieces of memory.
    assert growth_kb(uses) < 8
    quarter = len(uses) // 4
    for of_use in (lambda use: use.open_files, lambda use: use.processes):
        assert max(map(of_use, uses[-quarter:])) <= max(map(of_use, uses[:quarter])) + 4
    # Two perfs at the edges of windows, and the guard; a pair of helpers for a moment.
    assert max(use.processes for use in uses) <= 8
    assert max(use.scratch_bytes for use in uses) < 64 << 20


def check_store(directory: Path, pids: Sequence[int]) -> None:
    store = open_store(directory, create=False)
    (session,) = store.sessions()
    assert session.state is SessionState.FINISHED
    captures = [store.load(run) for run in store.runs()]
    assert len(captures) >= WINDOWS
    assert [capture.info.identity.round for capture in captures] == list(range(len(captures)))
    instances = [capture.info.identity.instance for capture in captures]
    assert list(dict.fromkeys(instances)) == [f"{NAME}-{pid}" for pid in pids]
    for pid in pids[:-1]:
        last = [capture for capture in captures if capture.info.identity.instance == f"{NAME}-{pid}"][-1]
        assert any("the process ended" in text for text in (last.info.outcome.failure, *last.quality.notes)), last.info.outcome
    whole = [capture for capture in captures if not capture.info.outcome.failure]
    sampled_ns = sum(int(capture.samples.weight.sum()) for capture in whole)
    charged_ns = sum(capture.info.outcome.user_ns + capture.info.outcome.system_ns for capture in whole)
    # Threads and children of 2 ms are as long as a period: ends lose up to one, and what is counted scatters.
    assert sampled_ns == pytest.approx(charged_ns, rel=0.15)
    assert list((directory / "tmp").iterdir()) == []
