"""A service under test: started, awaited, put under load for a window, and stopped."""

from __future__ import annotations

import re
import signal
import socket
import time
import urllib.error
import urllib.parse
from dataclasses import field
from http.client import HTTPException
from pathlib import Path

from collectors.processes.process_group import GroupProcess, ProcessGroups, first_to_end
from collectors.processes.process_output import ending_text
from collectors.processes.process_status import all_processes, tree
from collectors.processes.process_times import CpuUsage, cpu_usage, used_between
from collectors.prometheus import open_address
from profiler.errors import CaptureError
from profiler.model.quick_dataclass import dataclass

POLL_S = 0.02
PROBE_TIMEOUT_S = 1.0
# A load may end a little before its window does, such as one that is told to last as long.
LEAST_OF_WINDOW = 0.9
_LOCAL = "127.0.0.1"


class ServiceFailure(CaptureError):
    """This run of the service failed; another one may not."""


@dataclass(frozen=True, slots=True)
class Readiness:
    """When a service can be put under load: one of a TCP ``port`` of this host that accepts, an ``http`` address that answers
    below 400, a ``log`` line that matches."""

    port: int = 0
    http: str = ""
    log: str = ""
    timeout_s: float = 60.0

    def __str__(self) -> str:
        if self.port:
            return f"port {self.port} does not accept"
        return f"{self.http} does not answer" if self.http else f"no line of its output matches {self.log!r}"


def check_nobody_answers(ready: Readiness) -> None:
    """``ServiceFailure`` when another process has the service's port: it would be taken for the service."""
    address = _address(ready)
    if address is not None and _accepts(*address):
        raise ServiceFailure(f"port {address[1]} is taken already: something else answers there")


def await_ready(service: GroupProcess, ready: Readiness) -> None:
    """``ServiceFailure``: it ended before it was ready, or was not ready in time."""
    log = _LogReader(service.command.output, re.compile(ready.log))
    deadline = time.monotonic() + ready.timeout_s
    while True:
        is_ready = log.has_match() if ready.log else _is_reachable(ready)
        if service.ends_within(0):
            raise ServiceFailure(f"the service ended before it was ready: {_ending(service)}")
        if is_ready:
            return
        if time.monotonic() > deadline:
            raise ServiceFailure(f"the service was not ready after {ready.timeout_s:g} s: {ready}")
        service.ends_within(POLL_S)


@dataclass(frozen=True, slots=True)
class Window:
    """What the service used while it was under load.  Times in ns."""

    wall_ns: int
    user_ns: int
    system_ns: int


def watch_window(service: GroupProcess, load: GroupProcess, window_s: float, limit_s: float) -> Window:
    """From now until the load ends, or for ``window_s`` (0 = the former); the load is then asked to end, with SIGINT.

    ``ServiceFailure``: the service ended, the load ended early, or took longer than ``limit_s`` (0 = it may take any time).
    """
    started_ns, before = time.monotonic_ns(), service_usage(service)
    ended = first_to_end((service, load), window_s or limit_s or 1e9)
    after, ended_ns = service_usage(service), time.monotonic_ns()
    if ended is service:
        raise ServiceFailure(f"the service ended under load: {_ending(service)}")
    if ended is None and not window_s:
        raise ServiceFailure(f"timed out after {limit_s:g} s")
    wall_ns = ended_ns - started_ns
    if ended is None:
        load.signal(signal.SIGINT)
    elif window_s and wall_ns < LEAST_OF_WINDOW * window_s * 1e9:
        how = ending_text(load.exit_code(), load.command.output)
        raise ServiceFailure(f"the load ended after {wall_ns / 1e9:.1f} s of its window of {window_s:g} s: {how}")
    return Window(wall_ns, *used_between(before, after))


def finish_load(load: GroupProcess, was_asked: bool, timeout_s: float) -> None:
    """Waits for a load to print its results.  ``ServiceFailure`` when it failed, or does not end though it was asked."""
    if not load.ends_within(timeout_s):
        load.kill()
        raise ServiceFailure(f"the load did not end within {timeout_s:g} s of SIGINT")
    interrupted = (-signal.SIGINT, 128 + signal.SIGINT) if was_asked else ()
    if load.exit_code() not in (0, *interrupted):
        raise ServiceFailure(f"the load failed: {ending_text(load.exit_code(), load.command.output)}")


def warm_up(groups: ProcessGroups, service: GroupProcess, load: GroupProcess, until: float) -> bool:
    """Lets a load run until it ends or ``until`` (monotonic, s), when it is ended; whether it ended by itself.

    ``ServiceFailure``: it failed, or the service ended.
    """
    ended = first_to_end((service, load), until - time.monotonic())
    if ended is service:
        raise ServiceFailure(f"the service ended in its warm-up: {_ending(service)}")
    if ended is load and load.exit_code():
        raise ServiceFailure(f"the load failed in the warm-up: {ending_text(load.exit_code(), load.command.output)}")
    load.signal(signal.SIGINT)
    load.ends_within(1.0)
    groups.end(load)
    return ended is load


def stop_service(groups: ProcessGroups, service: GroupProcess, stop_signal: str, timeout_s: float) -> None:
    """Asks the service to end and waits for it; then ends what it left behind.

    ``ServiceFailure``: it had ended before, did not end in time, or crashed instead.
    """
    number = signal.Signals[f"SIG{stop_signal}"]
    if service.ends_within(0):
        raise ServiceFailure(f"the service ended by itself: {_ending(service)}")
    service.signal(number)
    has_ended = service.ends_within(timeout_s)
    groups.end(service)
    if not has_ended:
        raise ServiceFailure(f"the service did not end within {timeout_s:g} s of {number.name}, and was killed")
    if service.exit_code() < 0 and service.exit_code() != -number:
        raise ServiceFailure(f"the service crashed when it was stopped: {_ending(service)}")


def service_usage(service: GroupProcess) -> CpuUsage:
    """CPU time of the service's processes up to now."""
    return cpu_usage(tree((service.pid,), all_processes()))


def _ending(service: GroupProcess) -> str:
    return ending_text(service.exit_code(), service.command.output)


def _address(ready: Readiness) -> tuple[str, int] | None:
    if ready.port:
        return _LOCAL, ready.port
    if not ready.http:
        return None
    parts = urllib.parse.urlsplit(ready.http)
    return parts.hostname or _LOCAL, parts.port or (443 if parts.scheme == "https" else 80)


def _is_reachable(ready: Readiness) -> bool:
    if ready.port:
        return _accepts(_LOCAL, ready.port)
    try:
        with open_address(ready.http, PROBE_TIMEOUT_S) as answer:
            return bool(answer.status < 400)
    except urllib.error.HTTPError as error:
        error.close()
        return False
    except (OSError, HTTPException, ValueError):
        return False


def _accepts(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), PROBE_TIMEOUT_S):
            return True
    except OSError:
        return False


@dataclass(slots=True)
class _LogReader:
    """Looks at each whole line of a growing file once."""

    path: Path
    pattern: re.Pattern[str]
    _read: int = 0
    _rest: bytes = field(default=b"")

    def has_match(self) -> bool:
        with self.path.open("rb") as stream:
            stream.seek(self._read)
            data = stream.read(1 << 20)
        self._read += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._rest = self._rest[-(1 << 16) :]
        return any(self.pattern.search(line.decode("utf-8", "replace")) for line in (*lines, self._rest))
