"""Services with real processes: when they are ready, how they end, and that nothing of them is left behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from collectors.processes.guard import GroupGuard
from collectors.processes.process_group import GroupCommand, GroupProcess, ProcessGroups
from collectors.processes.process_status import all_processes, has_running, tree
from collectors.processes.process_times import cpu_usage, used_between
from collectors.processes.service import (
    Readiness,
    ServiceFailure,
    await_ready,
    check_nobody_answers,
    finish_load,
    stop_service,
    watch_window,
)

SPIN = "import time\nend = time.process_time() + {}\nwhile time.process_time() < end: pass\n"


@pytest.fixture
def groups() -> Iterator[ProcessGroups]:
    with GroupGuard() as guard, ProcessGroups(guard) as made:
        yield made


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def shell(groups: ProcessGroups, directory: Path, script: str, name: str = "output") -> GroupProcess:
    return groups.start(GroupCommand(("/bin/sh", "-c", script), directory / name))


def test_ready_by_its_log(groups: ProcessGroups, tmp_path: Path) -> None:
    service = shell(groups, tmp_path, "echo starting; sleep 0.2; echo 'listening on 80'; exec sleep 60")
    await_ready(service, Readiness(log=r"listening on \d+", timeout_s=20))
    stop_service(groups, service, "TERM", 10)
    assert (tmp_path / "output").read_text() == "starting\nlistening on 80\n"


def test_ready_by_port_and_by_http(groups: ProcessGroups, tmp_path: Path, port: int) -> None:
    check_nobody_answers(Readiness(port=port))
    server = (sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "--directory", str(tmp_path), str(port))
    service = groups.start(GroupCommand(server, tmp_path / "output"))
    await_ready(service, Readiness(port=port, timeout_s=20))
    await_ready(service, Readiness(http=f"http://127.0.0.1:{port}/", timeout_s=20))
    with pytest.raises(ServiceFailure, match=r"not ready after 0.2 s: http://127.0.0.1:\d+/none does not answer"):
        await_ready(service, Readiness(http=f"http://127.0.0.1:{port}/none", timeout_s=0.2))
    with pytest.raises(ServiceFailure, match=f"port {port} is taken already"):
        check_nobody_answers(Readiness(http=f"http://127.0.0.1:{port}/"))
    stop_service(groups, service, "INT", 10)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo no such table; exit 3", "ended before it was ready: exit code 3; its last line: no such table"),
        ("kill -SEGV $$", "ended before it was ready: killed by SIGSEGV"),
        ("exec sleep 60", "not ready after 0.2 s: no line of its output matches 'ready'"),
    ],
)
def test_services_that_are_never_ready(groups: ProcessGroups, tmp_path: Path, script: str, reason: str) -> None:
    with pytest.raises(ServiceFailure, match=reason):
        await_ready(shell(groups, tmp_path, script), Readiness(log="ready", timeout_s=0.2 if "sleep" in script else 20))


@pytest.mark.parametrize(
    ("service", "load", "window_s", "limit_s", "reason"),
    [
        ("sleep 0.2; exit 4", "exec sleep 60", 30.0, 0.0, "service ended under load: exit code 4"),
        (
            "exec sleep 60",
            "echo refused; exit 1",
            30.0,
            0.0,
            r"of its window of 30 s: exit code 1; .*refused",
        ),
        ("exec sleep 60", "exec sleep 60", 0.0, 0.2, "timed out after 0.2 s"),
    ],
)
def test_windows_that_are_cut_short(
    groups: ProcessGroups, tmp_path: Path, service: str, load: str, window_s: float, limit_s: float, reason: str
) -> None:
    running = shell(groups, tmp_path, service), shell(groups, tmp_path, load, "load")
    with pytest.raises(ServiceFailure, match=reason):
        watch_window(*running, window_s, limit_s)


def test_load_is_asked_to_end_when_the_window_does(groups: ProcessGroups, tmp_path: Path) -> None:
    service = shell(groups, tmp_path, "exec sleep 60")
    load = shell(groups, tmp_path, "trap 'echo p99 3 ms; exit 0' INT; while true; do sleep 0.05; done", "load")
    window = watch_window(service, load, 0.5, 0.0)
    finish_load(load, was_asked=True, timeout_s=10)
    assert (tmp_path / "load").read_text() == "p99 3 ms\n"
    assert window.wall_ns >= 0.5e9


def test_load_that_fails_at_its_end(groups: ProcessGroups, tmp_path: Path) -> None:
    load = shell(groups, tmp_path, "echo half of it was refused; exit 9")
    with pytest.raises(ServiceFailure, match="the load failed: exit code 9; its last line: half of it was refused"):
        finish_load(load, was_asked=False, timeout_s=20)


def test_endings_of_a_service(groups: ProcessGroups, tmp_path: Path) -> None:
    polite = shell(groups, tmp_path, "trap 'echo stored; exit 0' HUP; echo up; while true; do sleep 0.02; done")
    await_ready(polite, Readiness(log="up", timeout_s=20))
    stop_service(groups, polite, "HUP", 10)
    assert (tmp_path / "output").read_text() == "up\nstored\n"
    stubborn = shell(groups, tmp_path, "trap '' TERM; echo up; while true; do sleep 0.02; done")
    await_ready(stubborn, Readiness(log="up", timeout_s=20))
    with pytest.raises(ServiceFailure, match=r"did not end within 0\.2 s of SIGTERM, and was killed"):
        stop_service(groups, stubborn, "TERM", 0.2)
    crashing = shell(groups, tmp_path, "trap 'kill -SEGV $$' TERM; echo up; while true; do sleep 0.02; done")
    await_ready(crashing, Readiness(log="up", timeout_s=20))
    with pytest.raises(ServiceFailure, match="crashed when it was stopped: killed by SIGSEGV"):
        stop_service(groups, crashing, "TERM", 10)
    gone = shell(groups, tmp_path, "exit 0")
    assert gone.ends_within(20)
    with pytest.raises(ServiceFailure, match="ended by itself: exit code 0"):
        stop_service(groups, gone, "TERM", 10)


def members(group: int) -> list[int]:
    """Those that have not ended; what has ended and waits to be waited for has no command line any more."""
    of_session = [status.pid for status in all_processes().values() if status.session == group]
    return [pid for pid in of_session if Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes()]


def test_workers_end_with_their_service(groups: ProcessGroups, tmp_path: Path) -> None:
    service = shell(groups, tmp_path, "trap '' TERM; (exec sleep 60) & (exec sleep 60) & echo up; wait")
    await_ready(service, Readiness(log="up", timeout_s=20))
    assert len(members(service.pid)) == 3
    service.signal(signal.SIGKILL)
    groups.end(service)
    assert members(service.pid) == []


def test_nothing_is_left_when_slotscope_is_killed(tmp_path: Path) -> None:
    script = (
        "import sys, time\nfrom pathlib import Path\nfrom collectors.processes.guard import GroupGuard\n"
        "from collectors.processes.process_group import GroupCommand, ProcessGroups\n"
        "with GroupGuard() as guard, ProcessGroups(guard) as groups:\n"
        f"    made = groups.start(GroupCommand(('/bin/sh', '-c', 'sleep 60 & exec sleep 60'), Path({str(tmp_path / 'o')!r})))\n"
        "    print(made.pid, flush=True)\n    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=os.getcwd()) as process:
        assert process.stdout is not None
        group = int(process.stdout.readline())
        try:
            # The shell and what it starts; a process that is becoming another one has no command line for a moment.
            wait_until(lambda: len(members(group)) == 2)
        finally:
            process.kill()
    wait_until(lambda: members(group) == [])


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_cpu_time_of_a_running_tree_is_what_its_end_tells() -> None:
    """A process that spins for 0.2 s and waits for a child that spins for 0.1 s: as the kernel charges them in the end."""
    script = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {SPIN.format(0.1)!r}])\n{SPIN.format(0.2)}"
    script += "print('done', flush=True)\nsys.stdin.read()\n"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", script], **pipes)  # type: ignore[call-overload]
    assert process.stdout.readline() == b"done\n"
    before = cpu_usage([])
    user_ns, system_ns = used_between(before, cpu_usage(tree((process.pid,), all_processes())))
    process.stdin.close()
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0
    process.stdout.close()
    assert user_ns + system_ns >= 0.3e9
    assert user_ns + system_ns == pytest.approx((usage.ru_utime + usage.ru_stime) * 1e9, rel=0.15)


def test_what_has_ended_runs_no_more_though_nobody_waited_for_it() -> None:
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as process:
        assert has_running(process.pid)
        process.kill()
        while Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
            time.sleep(0.01)
        assert not has_running(process.pid)
        os.killpg(process.pid, 0)  # for the kernel its group is still there
