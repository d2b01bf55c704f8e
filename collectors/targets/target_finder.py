"""How a running process is named, and which one is meant."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from collectors.processes.process_output import last_line
from collectors.processes.process_status import ProcessStatus, comm_of, command_line, status_of
from profiler.errors import CaptureError
from profiler.model.quick_dataclass import dataclass

CGROUPS = Path("/sys/fs/cgroup")
LONGEST_COMM = 15
SYSTEMCTL_TIMEOUT_S = 10.0
CONTAINER_TIMEOUT_S = 10.0
_CONTAINER_PROGRAMS = ("docker", "podman")
_CONTAINER_ID = re.compile(r"[0-9a-f]{12,64}")
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class TargetFinder:
    """One of: ``pid``; ``comm``, a regular expression for the whole name of the process; ``cgroup``, its path below
    /sys/fs/cgroup; ``unit``, a systemd unit; ``container``, a name or ID.  ``exclude``: for ``comm``, process IDs and regular
    expressions that are searched in the command line; what matches is not meant."""

    pid: int = 0
    comm: str = ""
    cgroup: str = ""
    unit: str = ""
    container: str = ""
    exclude: tuple[str, ...] = ()

    @property
    def is_given(self) -> bool:
        return bool(self.pid or self.comm or self.cgroup or self.unit or self.container)

    def __str__(self) -> str:
        if self.pid:
            return f"process {self.pid}"
        if self.comm:
            return f"process named {self.comm!r}{' and not excluded' if self.exclude else ''}"
        if self.cgroup:
            return f"process in cgroup {self.cgroup}"
        return f"process of unit {self.unit}" if self.unit else f"process of container {self.container}"


def found_processes(finder: TargetFinder, processes: Mapping[int, ProcessStatus]) -> list[ProcessStatus]:
    """Of a cgroup all members, of a unit or a container the main process; empty when there is none.  ``CaptureError``: no
    telling which it is, or whoever knows does not answer."""
    return [processes[pid] for pid in _found(finder, processes) if pid in processes]


def _found(finder: TargetFinder, processes: Mapping[int, ProcessStatus]) -> list[int]:
    if finder.pid:
        _refuse_thread(finder.pid)
        return [finder.pid]
    if finder.comm:
        return _named(finder, processes)
    if finder.cgroup:
        return cgroup_members(finder.cgroup)
    return unit_process(finder.unit) if finder.unit else _container_process(finder.container)


def longer_name_hint(comm: str) -> str:
    """What to add where no process has the name: the kernel keeps its first 15 bytes, and the whole of it has to match."""
    if re.fullmatch(r"[\w.-]+", comm) and len(comm) > LONGEST_COMM:
        return f"; the kernel keeps {LONGEST_COMM} characters of a name: {comm[:LONGEST_COMM]!r}"
    return ""


def _named(finder: TargetFinder, processes: Mapping[int, ProcessStatus]) -> list[int]:
    pattern = re.compile(finder.comm)
    named = {pid for pid in processes if pattern.fullmatch(comm_of(pid)) and not _is_excluded(pid, finder.exclude)}
    outermost = sorted(pid for pid in named if processes[pid].parent not in named)
    if len(outermost) > 1:
        shown = ", ".join(map(str, outermost[:_MOST_NAMED])) + (", ..." if len(outermost) > _MOST_NAMED else "")
        raise CaptureError(
            f"{len(outermost)} processes are named {finder.comm!r} ({shown}): choose one by its ID, or exclude the others"
        )
    return outermost


def _is_excluded(pid: int, exclude: Iterable[str]) -> bool:
    return any(text == str(pid) if text.isdecimal() else re.search(text, _command_line(pid)) for text in exclude)


def _command_line(pid: int) -> str:
    return " ".join(word.decode("utf-8", "replace") for word in command_line(pid)).rstrip()


def _refuse_thread(number: int) -> None:
    """Threads have entries below /proc that no listing shows."""
    try:
        status = Path("/proc", str(number), "status").read_text(errors="replace")
    except OSError:
        return
    match = re.search(r"^Tgid:\s*(\d+)$", status, re.MULTILINE)
    if match is not None and int(match[1]) != number:
        raise CaptureError(f"{number} is a thread of process {match[1]}: give --pid {match[1]}")


def _container_process(name: str) -> list[int]:
    """The main process, as docker or podman tell it; where neither knows, a process of the cgroup that has the ID in its
    name."""
    asked = []
    for program in _CONTAINER_PROGRAMS:
        command = (program, "inspect", "--format", "{{.State.Pid}}", "--", name)
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=CONTAINER_TIMEOUT_S
            )
        except FileNotFoundError:
            continue
        except OSError as error:
            asked.append(f"{program} cannot be run: {error.strerror}")
            continue
        except subprocess.TimeoutExpired:
            asked.append(f"{program} did not answer within {CONTAINER_TIMEOUT_S:.0f} s")
            continue
        text = done.stdout.decode("utf-8", "replace").strip()
        if done.returncode == 0 and text.isdigit():
            if int(text):
                return [int(text)]
            raise CaptureError(f"container {name} does not run")
        asked.append(f"{program}: {last_line(done.stderr.decode('utf-8', 'replace')) or 'no answer'}")
    found = _by_container_id(name) if _CONTAINER_ID.fullmatch(name) else []
    if found:
        return found
    told = "; ".join(asked) or "neither docker nor podman is installed, and no cgroup has that ID in its name"
    raise CaptureError(f"container {name} is not found ({told}): give --cgroup, or --pid of its main process")


def _by_container_id(identifier: str) -> list[int]:
    for directory in sorted(CGROUPS.rglob(f"*{identifier}*")):
        if directory.is_dir():
            members = cgroup_members_if_any(str(directory.relative_to(CGROUPS)))
            statuses = [status for pid in members if (status := status_of(pid)) is not None]
            if statuses:
                return [min(statuses, key=lambda status: (status.started, status.pid)).pid]
    return []


def cgroup_members(name: str) -> list[int]:
    """Of a cgroup and those below it, by ID of the process.  ``CaptureError`` when they cannot be read."""
    directory = CGROUPS / name.strip("/")
    try:
        texts = [path.read_text() for path in sorted(directory.rglob("cgroup.procs"))]
    except OSError as error:
        raise CaptureError(f"cgroup {name}: {error.strerror}") from None
    return [int(pid) for text in texts for pid in text.split()]


def unit_process(unit: str) -> list[int]:
    """The main process of a systemd unit, if it runs.  ``CaptureError`` when systemctl does not say."""
    command = ("systemctl", "show", "--property=MainPID", "--value", "--", unit)
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=SYSTEMCTL_TIMEOUT_S)
    except OSError as error:
        raise CaptureError(f"unit {unit}: systemctl cannot be run: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise CaptureError(f"unit {unit}: systemctl did not answer within {SYSTEMCTL_TIMEOUT_S:.0f} s") from None
    text = done.stdout.decode("utf-8", "replace").strip()
    return [int(text)] if done.returncode == 0 and text.isdigit() and int(text) else []


def cgroup_members_if_any(cgroup: str) -> list[int]:
    """Empty when they cannot be read."""
    try:
        return cgroup_members(cgroup)
    except CaptureError:
        return []
