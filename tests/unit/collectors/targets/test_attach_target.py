"""What can be attached to, and one line for everything that cannot."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from collectors.processes.process_status import thread_statuses
from collectors.targets import attach_target, target_finder
from collectors.targets.attach_target import cgroup_of, find_target, recorded_path
from collectors.targets.mapped_files import root_identity
from collectors.targets.target_finder import TargetFinder
from profiler.errors import CaptureError

ROOT = Path(__file__).resolve().parents[4]
Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[subprocess.Popen[bytes]] = []

    def run(*arguments: str) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(arguments, stdin=subprocess.DEVNULL))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.wait()


def named(tmp_path: Path, name: str) -> str:
    """A `sleep` of another name, which no other process has."""
    program = shutil.which("sleep")
    assert program is not None
    shutil.copy(program, tmp_path / name)
    return str(tmp_path / name)


def wait_for_name(pid: int, name: str) -> None:
    while Path(f"/proc/{pid}/comm").read_text().strip() != name:
        time.sleep(0.005)


def asking(call: str) -> str:
    """A program that prints the line with which a call is refused."""
    imports = "from collectors.targets.attach_target import *\nfrom collectors.targets.target_finder import *"
    return f"{imports}\ntry: {call}\nexcept CaptureError as error: print(error)"


def refused(finder: TargetFinder) -> str:
    with pytest.raises(CaptureError) as error:
        find_target(finder)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_by_process_id(start: Start, tmp_path: Path) -> None:
    process = start(named(tmp_path, "att-one"), "60")
    wait_for_name(process.pid, "att-one")
    target = find_target(TargetFinder(pid=process.pid))
    assert (target.pid, target.name, target.cgroup) == (process.pid, "att-one", "")
    assert target.instance == f"att-one-{process.pid}"
    assert [status.pid for status in target.members()] == [process.pid]
    assert [thread.started for thread in thread_statuses(process.pid)] == [target.started]
    program = attach_target.readable_program(target)
    assert program is not None
    assert recorded_path(program) == str(tmp_path / "att-one")
    (tmp_path / "att-one").unlink()
    assert recorded_path(program) == str(tmp_path / "att-one")
    assert root_identity(process.pid) == root_identity("self")
    assert target.is_there()
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert not target.is_there()
    assert "has ended, and only waits for its parent" in refused(TargetFinder(pid=process.pid))


def test_members_are_what_it_started(start: Start) -> None:
    process = start("sh", "-c", "sleep 60 & sleep 60 & wait")
    target = find_target(TargetFinder(pid=process.pid))
    while len(target.members()) < 3:
        time.sleep(0.005)
    members = target.members()
    assert members[0].pid == process.pid
    assert {member.parent for member in members[1:]} == {process.pid}
    for member in members[1:]:
        os.kill(member.pid, 9)


def test_by_name_with_others_excluded(start: Start, tmp_path: Path) -> None:
    program = named(tmp_path, "att-many")
    processes = [start(program, f"{60 + number}") for number in range(3)]
    for process in processes:
        wait_for_name(process.pid, "att-many")
    message = refused(TargetFinder(comm="att-.*"))
    assert message.startswith("3 processes are named 'att-.*' (")
    assert all(str(process.pid) in message for process in processes)
    assert message.endswith("choose one by its ID, or exclude the others")
    found = find_target(TargetFinder(comm="att-many", exclude=(str(processes[0].pid), "many 61$")))
    assert found.pid == processes[2].pid
    assert "named 'att'" in refused(TargetFinder(comm="att"))  # the whole name must match
    assert "and not excluded" in refused(TargetFinder(comm="att-many", exclude=("many",)))


def test_what_is_no_process_to_profile() -> None:
    assert "there is no process 4194304" in refused(TargetFinder(pid=1 << 22))
    assert "keeps 15 characters of a name: 'nimbus_beacon_n'" in refused(TargetFinder(comm="nimbus_beacon_node"))
    ready, done = threading.Event(), threading.Event()
    number: list[int] = []

    def wait() -> None:
        number.append(threading.get_native_id())
        ready.set()
        done.wait()

    thread = threading.Thread(target=wait)
    thread.start()
    ready.wait()
    assert f"{number[0]} is a thread of process {os.getpid()}: give --pid {os.getpid()}" in refused(TargetFinder(pid=number[0]))
    done.set()
    thread.join()


def test_kernel_thread() -> None:
    if not Path("/proc/2/comm").exists() or Path("/proc/2/comm").read_text() != "kthreadd\n":
        pytest.skip("no kernel threads are seen here")
    assert "process 2 (kthreadd) is a kernel thread" in refused(TargetFinder(pid=2))


def test_process_file_system_of_another_namespace() -> None:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("needs root and unshare")
    code = asking("find_target(TargetFinder(pid=1))")
    done = subprocess.run(
        ["unshare", "--pid", "--fork", sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT
    )
    if done.returncode:
        pytest.skip(f"unshare cannot make a namespace here: {done.stderr.strip()}")
    assert "/proc shows the processes of another PID namespace" in done.stdout
    mounted = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", code.replace("pid=1)", "pid=77777)")]
    done = subprocess.run(mounted, capture_output=True, text=True, check=False, cwd=ROOT)
    assert "there is no process 77777 in this PID namespace" in done.stdout


def test_process_of_another_user(start: Start, tmp_path: Path) -> None:
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root and setpriv")
    process = start("sleep", "60")
    wait_for_name(process.pid, "sleep")
    code = asking(f"check_access(find_target(TargetFinder(pid={process.pid})))")
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", sys.executable, "-c", code]
    done = subprocess.run(nobody, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert f"process {process.pid} (sleep) belongs to root: run slotscope as root" in done.stdout
    assert "CAP_PERFMON and CAP_SYS_PTRACE" in done.stdout


@pytest.fixture
def cgroup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree of cgroups of our own making."""
    monkeypatch.setattr(target_finder, "CGROUPS", tmp_path / "cgroups")
    directory = tmp_path / "cgroups/node"
    directory.mkdir(parents=True)
    return directory


def test_a_cgroup_is_led_by_its_oldest_process(start: Start, cgroup: Path) -> None:
    processes = [start("sleep", "60") for _ in range(3)]
    (cgroup / "cgroup.procs").write_text("".join(f"{process.pid}\n" for process in reversed(processes)))
    target = find_target(TargetFinder(cgroup="node"))
    assert (target.pid, target.cgroup) == (processes[0].pid, "node")
    assert [status.pid for status in target.members()] == [process.pid for process in processes]
    (cgroup / "cgroup.procs").write_text("")
    assert "there is no process in cgroup node" in refused(TargetFinder(cgroup="node"))
    assert "there is no process in cgroup nosuch" in refused(TargetFinder(cgroup="nosuch"))


def test_containers(start: Start, cgroup: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a docker of our own, and without any."""
    process = start("sleep", "60")
    programs = tmp_path / "programs"
    programs.mkdir()
    docker = programs / "docker"
    answers = f'*"-- node") echo {process.pid};; *"-- off") echo 0;; *) echo "no such object" >&2; exit 1;;'
    docker.write_text(f'#!/bin/sh\ncase "$*" in {answers} esac\n')
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    assert find_target(TargetFinder(container="node")).pid == process.pid
    assert "container off does not run" in refused(TargetFinder(container="off"))
    message = refused(TargetFinder(container="nosuch"))
    assert message == ("container nosuch is not found (docker: no such object): give --cgroup, or --pid of its main process")
    docker.unlink()
    assert "neither docker nor podman is installed" in refused(TargetFinder(container="node"))
    scope = cgroup / f"docker-{'ab' * 32}.scope"
    scope.mkdir()
    (scope / "cgroup.procs").write_text(f"{process.pid}\n")
    assert find_target(TargetFinder(container="ab" * 6)).pid == process.pid


def test_own_cgroup_of_a_process() -> None:
    """What the kernel lists for a process is found again; the root of all is nobody's own."""
    own = cgroup_of(os.getpid())
    listed = Path("/proc/self/cgroup").read_text()
    assert own == "" or own.partition("/")[2] in listed or own in listed
