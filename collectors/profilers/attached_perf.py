"""`perf record` on a target that runs already, told when to begin and when to end.

One recording is one window.  While it is recorded the next perf attaches and records already; at the edge the one is told to
pause, and from then on the samples of the other count.  Its events must not wait disabled for the edge: of a process that is
forked meanwhile they would hold neither name nor mappings.  Every file is whole: it begins with the processes, threads and
mappings of its own time, which the files of ``perf record --switch-output`` do not (perf 6.1 repeats those of its start, and
nothing of what came later).
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from collectors.processes.guard import GroupGuard
from collectors.processes.process_status import thread_statuses
from collectors.profilers.perf_control import PerfChannel, open_channel
from collectors.profilers.perf_record import FINISH_ASKED_S, PerfEnd, PerfRecorder, explain_failure, perf_arguments
from collectors.targets.attach_target import AttachTarget
from profiler.errors import CaptureError
from profiler.model.fitness import ATTACH_BUFFER_KB, LOCKED_BY_SESSION_KB
from profiler.model.run import PerfSettings

# Until perf has opened its events and read what is mapped: some seconds for thousands of threads.
ATTACH_TIMEOUT_S = 120.0
ATTEMPTS = 5
FAILURES_WITH_CHILDREN = 2
TRIES_FOR_NEWCOMERS = 3
# Two perfs record for a moment, and share the 516 KiB a CPU that an ordinary user may lock.
_SMALL_BUFFER = f"{ATTACH_BUFFER_KB}K"
_ENOUGH_SESSIONS = 10
_CHILD_AGE_S = 1.0
_BUILD_IDS_SINCE = (5, 12)
# What perf says of threads that end between being listed and being opened.
_THREAD_ENDED = "WARNING: Ignored open failure for pid"


class AttachedPerf:
    """A perf that is attached and waits.  ``begin``, ``pause``, ``finish`` in this order, or ``abort``.  ``left_out``: children
    that were too young to be attached to."""

    def __init__(
        self, channel: PerfChannel, recorder: PerfRecorder, descriptor: int, guard: GroupGuard, pids: tuple[int, ...]
    ) -> None:
        self.pids = pids
        self.left_out = 0
        self._channel = channel
        self._recorder = recorder
        self._guard = guard
        self._descriptor = descriptor

    @property
    def pid(self) -> int:
        return self._channel.process.pid

    @property
    def descriptor(self) -> int:
        """Readable when perf has ended."""
        return self._descriptor

    @property
    def arguments(self) -> tuple[str, ...]:
        return self._recorder.arguments

    def begin(self) -> int:
        """The moment (monotonic, ns; the clock of the samples) from which on they count."""
        return time.monotonic_ns()

    def pause(self) -> int | None:
        """The moment (monotonic, ns) up to which was recorded; None when perf has ended before, and so recorded up to then."""
        return time.monotonic_ns() if self._channel.send(b"disable", ATTACH_TIMEOUT_S) else None

    def finish(self) -> tuple[PerfEnd, int]:
        """Waits for the file; with the CPU time in ns that perf has used from its start to its end."""
        try:
            used_ns = self._end_process()
            self._recorder.stop()  # how perf ended is judged by its having been asked
            end = self._recorder.finish()
        finally:
            self._close()
        messages = tuple(line for line in end.messages if not line.startswith(_THREAD_ENDED))
        if self.left_out:
            messages += (f"processes that had only just started, and are not recorded: {self.left_out}",)
        return replace(end, messages=messages), used_ns

    def _end_process(self) -> int:
        """Asks perf to end and waits for it here, since whoever waits is told its CPU time; 0 when it does not end."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._descriptor, signal.SIGINT)
        if not select.select([self._descriptor], [], [], FINISH_ASKED_S)[0]:
            return 0
        _, status, usage = os.wait4(self.pid, 0)
        self._channel.process.returncode = os.waitstatus_to_exitcode(status)
        return round((usage.ru_utime + usage.ru_stime) * 1e9)

    def abort(self) -> None:
        """Ends perf now; what it wrote is not wanted."""
        try:
            self._recorder.abort()
        finally:
            self._close()

    def _close(self) -> None:
        self._channel.close_answers()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            self._guard.release(self.pid)


def attach(
    settings: PerfSettings, target: AttachTarget, output: Path, guard: GroupGuard, with_build_ids: bool = False
) -> AttachedPerf:
    """perf on all threads of all processes of the target, ready to begin.  What they start later is followed.

    A thread that starts between perf's look at the list of threads and the opening of its parent's event is in neither: when
    there may be one, perf attaches anew, ``TRIES_FOR_NEWCOMERS`` times at most.  Children that may end at any moment are left
    out, and told of, only when perf has failed before because some did.  ``with_build_ids``: the kernel says of every new
    mapping which build it is (Linux and perf 5.12), in place of perf, which looks at paths when all is over.  ``CaptureError``:
    perf may not record here, cannot, or the target has ended.
    """
    lines: list[str] = []
    failures = tries = 0
    while failures < ATTEMPTS:
        started = _boot_ticks()
        all_pids = _pids(target, youngest_s=0.0)
        pids = _pids(target, youngest_s=_CHILD_AGE_S) if failures >= FAILURES_WITH_CHILDREN else all_pids
        output.unlink(missing_ok=True)  # perf would keep it under another name
        if not target.is_there():
            raise CaptureError(_ended(target))
        found = _attempt(settings, pids, output, guard, with_build_ids)
        if isinstance(found, AttachedPerf):
            tries += 1
            if tries >= TRIES_FOR_NEWCOMERS or not _has_newcomers(target, started):
                found.left_out = len(set(all_pids) - set(pids))
                return found
            found.abort()
            continue
        failures += 1
        lines = found
        # One that ends while perf attaches to it makes perf give up, or crash, with a warning or without a word (6.1).
        if lines and not any(map(_is_of_ended_thread, lines)):
            break
    raise CaptureError(_explained(lines, settings, target) if target.is_there() else _ended(target))


def kernel_tells_builds(perf_version: str) -> bool:
    """Whether ``attach`` may be asked for build IDs."""
    numbers = [re.match(r"(\d+)\.(\d+)", version) for version in (perf_version, os.uname().release)]
    return all(found is not None and (int(found[1]), int(found[2])) >= _BUILD_IDS_SINCE for found in numbers)


def _is_of_ended_thread(line: str) -> bool:
    return "No such process" in line or line.startswith(_THREAD_ENDED)


def _has_newcomers(target: AttachTarget, since: int) -> bool:
    """Whether a thread of the target started at ``since`` (clock ticks since boot) or later."""
    return any(thread.started >= since for status in target.members() for thread in thread_statuses(status.pid))


def _boot_ticks() -> int:
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))


def _ended(target: AttachTarget) -> str:
    return f"process {target.pid} ({target.name}) ended while slotscope attached to it"


def _attempt(
    settings: PerfSettings, pids: tuple[int, ...], output: Path, guard: GroupGuard, with_build_ids: bool
) -> AttachedPerf | list[str]:
    """The lines that perf printed when it ended instead: a child may end between being listed and being attached to."""
    is_root = os.geteuid() == 0
    more = [*(() if is_root else ("-m", _SMALL_BUFFER)), *(("--buildid-mmap",) if with_build_ids else ())]
    messages = tempfile.TemporaryFile()  # noqa: SIM115 -- closed by the recorder
    try:
        channel = open_channel(
            lambda control: [*perf_arguments(settings, pids, output, control, is_root, False), *more],
            messages,
            guard,
        )
    except BaseException:
        messages.close()
        raise
    recorder = PerfRecorder(channel.process, messages, channel.commands, channel.arguments)
    try:
        # Enabled they are already: the answer says that all events are open and all mappings read.
        if channel.send(b"enable", ATTACH_TIMEOUT_S):
            return AttachedPerf(channel, recorder, os.pidfd_open(channel.process.pid), guard, pids)
    except BaseException:
        channel.close_answers()
        recorder.abort()
        guard.release(channel.process.pid)
        raise
    channel.close_answers()
    channel.process.wait()
    guard.release(channel.process.pid)
    return recorder.messages()


def _pids(target: AttachTarget, youngest_s: float) -> tuple[int, ...]:
    """The leading process first.  ``youngest_s``: children that may end at any moment are left out."""
    least = _boot_ticks() - youngest_s * os.sysconf("SC_CLK_TCK")
    members = [status for status in target.members() if status.pid == target.pid or status.started <= least]
    return tuple(status.pid for status in members if not status.has_ended and not status.is_kernel_thread)


def _explained(lines: Sequence[str], settings: PerfSettings, target: AttachTarget) -> str:
    text = "\n".join(lines)
    if "Too many open files" in text or "Too many events are opened" in text:
        return (
            f"process {target.pid} ({target.name}) has more threads than perf may open files for, one for each thread and CPU: "
            "raise the limit with `ulimit -Hn`, or run as root"
        )
    if "Permission error mapping pages" in text or "mlock" in text:
        session, most = LOCKED_BY_SESSION_KB, _ENOUGH_SESSIONS
        return (
            "perf may not lock enough memory: all sessions of a user share kernel.perf_event_mlock_kb, each takes "
            f"{session} of it, `sudo sysctl kernel.perf_event_mlock_kb={most * session}` is enough for {most}; "
            "or raise `ulimit -l`, or run as root"
        )
    return explain_failure(lines, settings)
