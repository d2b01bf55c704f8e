"""Programs that end well, badly, or never start; what is measured of them; and that nothing is left behind."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from collectors.processes.launcher import LaunchRequest, launch, launch_recorded, resolve_program
from collectors.processes.process_output import OUTPUT_TAIL_BYTES
from profiler.errors import CaptureError

PYTHON = sys.executable


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., LaunchRequest]:
    return lambda *arguments, **options: LaunchRequest(arguments, tmp_path / "output", **options)


@dataclass
class FakeRecorder:
    """Notes what it was attached to."""

    pid: int
    parent: int
    aborted: list[bool] = field(default_factory=list)

    def abort(self) -> None:
        self.aborted.append(True)


def attach(pid: int) -> FakeRecorder:
    status = Path(f"/proc/{pid}/stat").read_text()
    return FakeRecorder(pid, int(status.rpartition(")")[2].split()[1]))


def test_exit_code_and_output_of_both_streams(run: Callable[..., LaunchRequest], tmp_path: Path) -> None:
    outcome = launch(run("sh", "-c", "echo out; echo err >&2; exit 3"))
    assert (outcome.exit_code, outcome.failure, outcome.is_valid) == (3, "exit code 3", False)
    assert outcome.output_tail == "out\nerr\n"
    assert (tmp_path / "output").read_text() == "out\nerr\n"


def test_program_killed_by_a_signal(run: Callable[..., LaunchRequest]) -> None:
    outcome = launch(run("sh", "-c", "kill -SEGV $$"))
    assert (outcome.exit_code, outcome.failure) == (-11, "killed by SIGSEGV")


def test_tail_of_the_output_is_bounded(run: Callable[..., LaunchRequest], tmp_path: Path) -> None:
    outcome = launch(run(PYTHON, "-c", "print('x' * 1_000_000 + 'end')"))
    assert len(outcome.output_tail) == OUTPUT_TAIL_BYTES
    assert outcome.output_tail.endswith("xend\n")
    assert (tmp_path / "output").stat().st_size == 1_000_004


def test_usage_is_that_of_the_program_and_its_children(run: Callable[..., LaunchRequest]) -> None:
    """Two processes burn 0.15 s each; by the kernel's own account the waiting before the program comes on top of it."""
    code = (
        "import os, time\npid = os.fork()\nend = time.process_time() + 0.15\n"
        "while time.process_time() < end: pass\nif pid: os.waitpid(pid, 0)"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    outcome = launch(run(PYTHON, "-S", "-c", code))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    accounted_ns = (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) * 1e9
    assert 0.3e9 <= outcome.user_ns + outcome.system_ns < accounted_ns
    assert outcome.wall_ns >= 0.15e9
    assert 0 < outcome.minor_faults <= after.ru_minflt - before.ru_minflt


def test_wall_time_is_that_of_the_program_not_of_the_wait_before_it(run: Callable[..., LaunchRequest]) -> None:
    def slow_attach(pid: int) -> FakeRecorder:
        time.sleep(0.5)
        return attach(pid)

    outcome, _ = launch_recorded(run("sleep", "0.1"), slow_attach)
    assert 0.1e9 <= outcome.wall_ns < 0.5e9


def test_recorder_is_attached_to_the_process_that_becomes_the_program(run: Callable[..., LaunchRequest]) -> None:
    outcome, recorder = launch_recorded(run("sh", "-c", "echo $$"), attach)
    assert int(outcome.output_tail) == recorder.pid
    assert recorder.parent == os.getpid()
    assert recorder.aborted == []


def test_program_runs_on_the_given_cpus_only(run: Callable[..., LaunchRequest]) -> None:
    cpu = max(os.sched_getaffinity(0))
    outcome = launch(run(PYTHON, "-c", "import os; print(os.sched_getaffinity(0))", cpus=frozenset({cpu})))
    assert outcome.output_tail.strip() == str({cpu})


def test_environment_is_handed_on_byte_for_byte(run: Callable[..., LaunchRequest], monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in the C locale, where an interpreter on the way would set LC_CTYPE, and beyond what a pipe holds."""
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ODD", "a=b\n\udcff")
    monkeypatch.setenv("LARGE", "x" * 100_000)
    expected = subprocess.run(["env", "-0"], env=os.environ, stdout=subprocess.PIPE, check=True).stdout
    request = run("env", "-0")
    assert launch(request).failure == ""
    assert sorted(request.output.read_bytes().split(b"\0")) == sorted(expected.split(b"\0"))


def test_surroundings_of_the_program(run: Callable[..., LaunchRequest]) -> None:
    """Nothing on standard input, no descriptor inherited, the signals that Python ignores are default again."""
    code = "import os, sys; print(sys.stdin.read() == '', len(os.listdir('/proc/self/fd')))"
    # The fourth descriptor is the one that lists the directory.
    assert launch(run(PYTHON, "-I", "-S", "-c", code)).output_tail == "True 4\n"
    shell = launch(run("sh", "-c", "grep SigIgn /proc/$$/status"))
    assert int(shell.output_tail.split()[1], 16) & (1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1) == 0


def test_program_that_does_not_exist(run: Callable[..., LaunchRequest], tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="no-such-program: not found in PATH"):
        launch(run("no-such-program"))
    with pytest.raises(CaptureError, match=r"nothing/here: no such file"):
        launch(run("nothing/here"))
    with pytest.raises(CaptureError, match="is a directory"):
        resolve_program(str(tmp_path))


def test_program_without_permission(run: Callable[..., LaunchRequest], tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    with pytest.raises(CaptureError, match=r"script: not executable: `chmod \+x"):
        launch(run(str(script)))


def test_file_that_the_kernel_cannot_execute(run: Callable[..., LaunchRequest], tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    foreign.write_bytes(b"\x00\x01\x02\x03")
    foreign.chmod(0o755)
    with pytest.raises(CaptureError, match="foreign: cannot be executed: Exec format error"):
        launch(run(str(foreign)))
    orphan = tmp_path / "orphan"
    orphan.write_text("#!/no/such/interpreter\n")
    orphan.chmod(0o755)
    with pytest.raises(CaptureError, match="orphan: cannot be executed: No such file"):
        launch(run(str(orphan)))


def test_attaching_that_fails_leaves_no_child(run: Callable[..., LaunchRequest]) -> None:
    seen: list[int] = []

    def refuse(pid: int) -> FakeRecorder:
        seen.append(pid)
        raise CaptureError("no permission")

    descriptors = len(os.listdir("/proc/self/fd"))
    with pytest.raises(CaptureError, match="no permission"):
        launch_recorded(run("sleep", "60"), refuse)
    assert not Path(f"/proc/{seen[0]}").exists()
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_interrupt_ends_the_program_its_children_and_the_recorder(run: Callable[..., LaunchRequest]) -> None:
    recorders: list[FakeRecorder] = []

    def attach_and_interrupt(pid: int) -> FakeRecorder:
        recorders.append(attach(pid))
        signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        return recorders[0]

    with pytest.raises(KeyboardInterrupt):
        launch_recorded(run("sh", "-c", "trap '' INT; sleep 60 & sleep 60; true"), attach_and_interrupt)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    (recorder,) = recorders
    assert recorder.aborted == [True]
    assert processes_of_session(recorder.pid) == []


def test_a_second_interrupt_leaves_nothing_behind_either(run: Callable[..., LaunchRequest]) -> None:
    recorders: list[FakeRecorder] = []

    def interrupt_once_more(*_: object) -> None:
        signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        signal.raise_signal(signal.SIGINT)

    def attach_and_interrupt_twice(pid: int) -> FakeRecorder:
        recorders.append(attach(pid))
        signal.signal(signal.SIGALRM, interrupt_once_more)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        return recorders[0]

    with pytest.raises(KeyboardInterrupt):
        launch_recorded(run("sh", "-c", "trap '' INT TERM; sleep 60 & sleep 60; true"), attach_and_interrupt_twice)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    (recorder,) = recorders
    assert recorder.aborted == [True]
    deadline = time.monotonic() + 5
    while processes_of_session(recorder.pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert processes_of_session(recorder.pid) == []


def processes_of_session(session: int) -> list[str]:
    """Living processes whose session is ``session``, by /proc."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(entry.parent.name)
    return found
