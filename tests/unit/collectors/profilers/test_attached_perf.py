"""Attaching with a perf of our own that complains, crashes or crashes once, and what is left behind: nothing."""

from __future__ import annotations

import errno
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from collectors.processes.guard import GroupGuard
from collectors.profilers.attached_perf import (
    ATTEMPTS,
    FAILURES_WITH_CHILDREN,
    TRIES_FOR_NEWCOMERS,
    attach,
    kernel_tells_builds,
)
from collectors.profilers.perf_control import ControlDescriptors, open_channel
from collectors.targets.attach_target import AttachTarget, find_target
from collectors.targets.target_finder import TargetFinder
from profiler.errors import CaptureError
from profiler.model.run import PerfSettings

SETTINGS = PerfSettings("cpu-clock", 99, 0, "fp")


@pytest.fixture
def target() -> Iterator[AttachTarget]:
    process = subprocess.Popen(["sleep", "60"])
    yield find_target(TargetFinder(pid=process.pid))
    process.kill()
    process.wait()


def perf_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> Path:
    """Puts a perf into PATH that runs a shell script; the file with one line per call."""
    calls = tmp_path / "calls"
    program = tmp_path / "bin/perf"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$*" >> {calls}\n{script}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    return calls


def refused(target: AttachTarget, output: Path) -> str:
    before = len(os.listdir("/proc/self/fd"))
    with GroupGuard() as guard, pytest.raises(CaptureError) as error:
        attach(SETTINGS, target, output, guard)
    assert len(os.listdir("/proc/self/fd")) == before
    assert "\n" not in str(error.value)
    return str(error.value)


def test_refusals_are_explained_at_once(target: AttachTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = perf_that(
        tmp_path, monkeypatch, "echo 'Access to performance monitoring and observability is limited.' >&2; exit 255"
    )
    message = refused(target, tmp_path / "out")
    assert "sysctl kernel.perf_event_paranoid=1" in message
    assert "cap_perfmon" in message
    assert len(calls.read_text().splitlines()) == 1


@pytest.mark.parametrize(
    ("complaint", "expected"),
    [
        ("Too many events are opened.", "ulimit -Hn"),
        ("Permission error mapping pages.", "kernel.perf_event_mlock_kb"),
        ("failed to do this", "could not start recording: failed to do this"),
    ],
)
def test_limits_are_named(
    target: AttachTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, complaint: str, expected: str
) -> None:
    perf_that(tmp_path, monkeypatch, f"echo '{complaint}' >&2; exit 255")
    assert expected in refused(target, tmp_path / "out")


@pytest.mark.parametrize(
    "last_words",
    [
        "echo 'thread/CPU maps: No such process' >&2; exit 1",
        "kill -SEGV $$",
        "echo 'WARNING: Ignored open failure for pid 10390' >&2; kill -SEGV $$",
    ],
    ids=["complains", "crashes", "warns-and-crashes"],
)
def test_what_may_be_an_ending_child_is_tried_again(
    target: AttachTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last_words: str
) -> None:
    calls = perf_that(tmp_path, monkeypatch, last_words)
    refused(target, tmp_path / "out")
    assert len(calls.read_text().splitlines()) == ATTEMPTS
    assert f" -p {target.pid} " in calls.read_text()


def test_target_that_ended(tmp_path: Path) -> None:
    process = subprocess.Popen(["sleep", "60"])
    target = find_target(TargetFinder(pid=process.pid))
    process.kill()
    process.wait()
    assert refused(target, tmp_path / "out") == f"process {target.pid} ({target.name}) ended while slotscope attached to it"


# A child every 30 ms, for 6 s.
FERTILE = "for _ in $(seq 200); do sleep 60 & sleep 0.03; done; wait"


def test_children_that_start_meanwhile_are_in_the_last_try(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A perf that is slow to attach misses some in any case, but none that was there when it began."""
    calls = perf_that(tmp_path, monkeypatch, f"sleep 0.3\n{ANSWERS % 2}")
    process = subprocess.Popen(["sh", "-c", FERTILE], start_new_session=True)
    try:
        target = find_target(TargetFinder(pid=process.pid))
        with GroupGuard() as guard:
            attach(SETTINGS, target, tmp_path / "out", guard).abort()
        counts = [line.partition(" -p ")[2].split()[0].count(",") for line in calls.read_text().splitlines()]
        assert len(counts) == TRIES_FOR_NEWCOMERS
        # One of them may be what makes the pauses.
        assert counts[0] + 1 < counts[1] < counts[2] - 1
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_children_that_are_left_out_are_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """perf crashes twice, as when a child ends meanwhile; then the child that has just started is left out."""
    calls = tmp_path / "calls"
    crash = f"[ $(wc -l < {calls}) -le {FAILURES_WITH_CHILDREN} ] && kill -SEGV $$\n"
    perf_that(tmp_path, monkeypatch, crash + ANSWERS % 2)
    process = subprocess.Popen(["sh", "-c", "sleep 1.2; sleep 60 & sleep 0.1; echo; wait"], stdout=-1, start_new_session=True)
    try:
        assert process.stdout is not None
        with process.stdout, GroupGuard() as guard:
            process.stdout.readline()
            perf = attach(SETTINGS, find_target(TargetFinder(pid=process.pid)), tmp_path / "out", guard)
            assert (perf.pids, perf.left_out) == ((process.pid,), 1)
            end, _ = perf.finish()
        assert end.messages[-1] == "processes that had only just started, and are not recorded: 1"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


# Acknowledges so many commands, and ends.
ANSWERS = """
for word; do last=$word; done
pair=${last#fd:}
for _ in $(seq %d); do
    read -r command < /dev/fd/${pair%%,*}
    echo ack > /dev/fd/${pair#*,}
done
exit 3
"""


def test_perf_that_has_ended_cannot_say_when_it_paused(
    target: AttachTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    perf_that(tmp_path, monkeypatch, ANSWERS % 1)
    with GroupGuard() as guard:
        perf = attach(SETTINGS, target, tmp_path / "out", guard)
        assert select.select([perf.descriptor], [], [], 30)[0]
        assert perf.pause() is None
        end, used_ns = perf.finish()
    assert end.failure == "perf ended with status 3: no message"
    assert used_ns > 0


def test_no_perf_is_left_when_it_cannot_be_watched(
    target: AttachTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    perf_that(tmp_path, monkeypatch, f"echo $$ > {tmp_path}/pid\n{ANSWERS % 1}".replace("exit 3", "exec sleep 60"))

    def refuse(pid: int) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, "pidfd_open", refuse)
    before = len(os.listdir("/proc/self/fd"))
    with GroupGuard() as guard, pytest.raises(OSError, match="Too many open files"):
        attach(SETTINGS, target, tmp_path / "out", guard)
    assert len(os.listdir("/proc/self/fd")) == before
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()


def test_the_guard_ends_perf(target: AttachTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody but perf itself has put it on the list."""
    perf_that(tmp_path, monkeypatch, (ANSWERS % 1).replace("exit 3", "exec sleep 60"))
    with GroupGuard() as guard:
        perf = attach(SETTINGS, target, tmp_path / "out", guard)
        assert not select.select([perf.descriptor], [], [], 0)[0]
    assert select.select([perf.descriptor], [], [], 30)[0]
    perf.abort()


@pytest.mark.parametrize("pipes", [1, 2])
def test_channel_that_cannot_be_opened_leaves_no_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pipes: int
) -> None:
    """No second pipe, or no arguments."""
    made, make_pipe = [], os.pipe

    def limited() -> tuple[int, int]:
        if len(made) == pipes:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        made.append(make_pipe())
        return made[-1]

    def no_arguments(control: ControlDescriptors) -> list[str]:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    before = len(os.listdir("/proc/self/fd"))
    with (tmp_path / "messages").open("wb") as messages:
        monkeypatch.setattr(os, "pipe", limited)
        with pytest.raises(OSError, match="Too many open files"):
            open_channel(no_arguments, messages)
    assert len(made) == pipes
    assert len(os.listdir("/proc/self/fd")) == before


def test_cpu_time_is_that_of_perf_alone(target: AttachTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """perf sleeps, while another child, which is waited for meanwhile, burns a second."""
    perf_that(tmp_path, monkeypatch, (ANSWERS % 1).replace("exit 3", "exec sleep 60"))
    burn = "import time\nwhile time.process_time() < 1: pass"
    with GroupGuard() as guard:
        perf = attach(SETTINGS, target, tmp_path / "out", guard)
        wait = select.select

        def while_another_ends(*arguments: Any) -> Any:
            subprocess.run([sys.executable, "-c", burn], check=True)
            return wait(*arguments)

        monkeypatch.setattr(select, "select", while_another_ends)
        end, used_ns = perf.finish()
    assert end.failure == ""
    assert 0 < used_ns < 5e8


@pytest.mark.parametrize(
    ("perf", "kernel", "tells"),
    [
        ("6.1.187", "6.18.44-fc", True),
        ("5.12", "5.12.0", True),
        ("5.11.9", "6.1.0", False),
        ("6.1", "5.10.0-28-amd64", False),
        ("unknown", "6.1.0", False),
    ],
)
def test_which_kernels_and_perfs_tell_builds(perf: str, kernel: str, tells: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """--buildid-mmap came with both."""
    uname = os.uname_result(("Linux", "h", kernel, "", "x86_64"))
    monkeypatch.setattr(os, "uname", lambda: uname)
    assert kernel_tells_builds(perf) is tells
