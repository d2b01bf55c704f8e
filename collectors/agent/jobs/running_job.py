"""A job under way, as the agent sees it: its process, what that has told, and the limits that it keeps within."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import IO

from collectors.agent.jobs.cpu_meter import CpuMeter, profiling_ns
from collectors.agent.jobs.job_values import JobEvent, JobEventKind, JobTask
from collectors.processes.guard import GroupGuard
from collectors.processes.process_output import OUTPUT_TAIL_BYTES, with_last_line
from collectors.processes.process_status import all_processes
from profiler.codec.json_values import JsonShapeError, from_json, to_json

# Beyond what was ordered: for attaching, and for reading what was recorded.
SLACK_S = 120.0
# From the wish to end until it is no wish any more.
GRACE_S = 60.0
_LONGEST_LINE = 1 << 16


class RunningJob:
    """``close`` when it has ended."""

    def __init__(self, task: JobTask, total_s: float, guard: GroupGuard) -> None:
        """``total_s``: how long it may take from its beginning.  Raises ``OSError`` when no process can be started."""
        self.task = task
        self.is_cancelled = False
        self.ending = ""
        self.last: JobEvent | None = None
        self._kill_at_s = float("inf")
        self._end_at_s = max(task.begin_at_ns / 1e9, time.monotonic()) + total_s + SLACK_S
        self._meter = CpuMeter()
        self._rest = b""
        self._messages: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 -- closed with the job
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "collectors.agent.jobs.job_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._messages,
            bufsize=0,
            start_new_session=True,
        )
        # Before it has its order: without one it does nothing, and ends when the agent does.
        guard.watch(self._process.pid)
        self._guard = guard
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._events = self._process.stdout
        self.descriptor = os.pidfd_open(self._process.pid)
        os.set_blocking(self._events.fileno(), False)
        with contextlib.suppress(BrokenPipeError), self._process.stdin as stream:
            stream.write(json.dumps(to_json(task)).encode())

    @property
    def descriptors(self) -> tuple[int, ...]:
        """One of them is readable when something has happened."""
        return (self.descriptor,) if self._events.closed else (self._events.fileno(), self.descriptor)

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def events(self) -> Iterator[JobEvent]:
        """What was told since the last look."""
        while not self._events.closed:
            try:
                data = os.read(self._events.fileno(), 1 << 16)
            except BlockingIOError:
                return
            if not data or len(self._rest) > _LONGEST_LINE:
                self._events.close()
                return
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                event = _event(line)
                if event is not None:
                    self.last = event
                    yield event

    def end(self, reason: str) -> None:
        """Asks for the end; ``reason`` becomes what is told of it.  Nothing happens the second time."""
        if self.ending:
            return
        self.ending = reason
        self._kill_at_s = time.monotonic() + GRACE_S
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """At once; the guards of the job end what it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def keep_limits(self, cpu_percent: float) -> None:
        """``cpu_percent``: of one CPU, 0 = not limited."""
        now_s = time.monotonic()
        if now_s > self._end_at_s:
            self.end("it took longer than was ordered and this agent allows")
        used = self._meter.read(now_s, profiling_ns(self._process.pid, all_processes()))
        if cpu_percent and used > cpu_percent:
            self.end(
                f"profiling used {used:.1f} % of a CPU over a minute, and this agent allows {cpu_percent:g} %: order a lower "
                "frequency, another call graph, or longer windows"
            )
        if now_s > self._kill_at_s:
            self.kill()

    def outcome(self) -> JobEvent:
        """The last event of a job that has ended; a process that told none failed."""
        for _ in self.events():
            pass
        if self.last is not None and self.last.kind in (JobEventKind.DONE, JobEventKind.FAILED):
            return self.last
        self._messages.seek(0)
        printed = self._messages.read()[-OUTPUT_TAIL_BYTES:].decode("utf-8", "replace")
        code = self._process.returncode
        how = f"was killed by signal {-code}" if code < 0 else f"ended with {code}"
        return JobEvent(JobEventKind.FAILED, with_last_line(f"the process of the job {how}", printed))

    def close(self) -> None:
        self._process.wait()
        self._guard.release(self._process.pid)
        self._events.close()
        self._messages.close()
        os.close(self.descriptor)


def _event(line: bytes) -> JobEvent | None:
    """None for a line that is no event: nothing else of the agent hangs on it."""
    try:
        return from_json(JobEvent, json.loads(line))
    except (JsonShapeError, ValueError):
        return None
