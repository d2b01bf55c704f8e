"""The tables of generated code on this host, as the processes themselves wrote them: /tmp/perf-PID.map and jitdump files."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from collectors.ingest.jit_dump import parse_jit_dump
from collectors.ingest.jit_names import CodeMap, generated_code_processes, parse_perf_map, with_generated_names
from profiler.model.capture import Capture
from profiler.model.quick_dataclass import dataclass

# jitdump files hold the code too, and are not read as a whole.
_LARGEST_MAP_BYTES = 1 << 28
_LARGEST_DUMP_BYTES = 1 << 34
# A process may write its table after its last sample, and clocks of files are coarse.
_SLACK_NS = 2_000_000_000
_CLOCK_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class JitMapFiles:
    """Where tables are looked for: ``folder`` is /tmp, ``processes`` is /proc."""

    folder: Path = Path("/tmp")
    processes: Path = Path("/proc")


def with_names_of_host(capture: Capture, files: JitMapFiles, dumps: Mapping[int, str]) -> Capture:
    """``capture`` with names for code in anonymous memory, where it was recorded on this host and the table of the process is
    one that this process wrote while it was recorded; a note says of every other table why it was not used.

    ``dumps``: paths of jitdump files by pid; such a file is preferred, it names all code.
    """
    this = os.uname()
    if (capture.info.host.hostname, capture.info.host.kernel) != (this.nodename, this.release):
        return capture
    period = _recorded_period(capture)
    maps: dict[int, CodeMap] = {}
    notes: list[str] = []
    for pid in generated_code_processes(capture):
        path, started_ns = _table_file(pid, files, dumps)
        reason = _distrust(path, period, started_ns)
        if reason is None:
            maps[pid] = _read(path, pid)
        elif reason:
            notes.append(f"names of generated code of process {pid} are not used: {path} {reason}")
    named = with_generated_names(capture, maps)
    return replace(named, quality=replace(named.quality, notes=(*named.quality.notes, *notes))) if notes else named


def _recorded_period(capture: Capture) -> tuple[int, int] | None:
    """(start, end) in ns since 1970, ``None`` when it is not known.  perf's clock is another one, so the length comes from the
    samples and the moment from the run, or from when the file was last written."""
    times, info = capture.samples.time_ns, capture.info
    length = int(times[-1]) - int(times[0]) if len(times) else 0
    if info.started_at:
        start = _nanoseconds(info.started_at)
        return start, start + max(length, info.outcome.wall_ns)
    if info.source_changed_at:
        end = _nanoseconds(info.source_changed_at)
        return end - length, end
    return None


def _nanoseconds(time_stamp: str) -> int:
    return int(datetime.fromisoformat(time_stamp).timestamp() * 1e9)


def _table_file(pid: int, files: JitMapFiles, dumps: Mapping[int, str]) -> tuple[Path, int]:
    """(table of a process, when the process started in ns since 1970 or 0 if it has ended).  A running process writes under its
    own root directory, and under the number that it knows of itself."""
    process = files.processes / str(pid)
    started_ns = _start_time(files.processes, process)
    if pid in dumps:
        inside = process / "root" / dumps[pid].lstrip("/")
        return (inside if started_ns and inside.exists() else Path(dumps[pid])), started_ns
    if started_ns:
        inside = process / "root" / "tmp" / f"perf-{_number_inside(process, pid)}.map"
        if inside.exists():
            return inside, started_ns
    return files.folder / f"perf-{pid}.map", started_ns


def _start_time(processes: Path, process: Path) -> int:
    try:
        ticks = int((process / "stat").read_text().rpartition(")")[2].split()[19])
        boot = next(line for line in (processes / "stat").read_text().splitlines() if line.startswith("btime "))
    except (OSError, ValueError, IndexError, StopIteration):
        return 0
    return (int(boot.split()[1]) * _CLOCK_TICKS_PER_SECOND + ticks) * 1_000_000_000 // _CLOCK_TICKS_PER_SECOND


def _number_inside(process: Path, pid: int) -> int:
    """The process's number in its own namespace: the last of "NSpid:"."""
    try:
        lines = (process / "status").read_text().splitlines()
        return next(int(line.split()[-1]) for line in lines if line.startswith("NSpid:"))
    except (OSError, ValueError, StopIteration):
        return pid


def _distrust(path: Path, period: tuple[int, int] | None, started_ns: int) -> str | None:
    """Why a table is not used, "" = there is none, ``None`` = it is used.  ``started_ns``: of the process that runs under this
    number now, 0 = none does."""
    try:
        found = path.stat()
    except OSError:
        return ""
    largest = _LARGEST_DUMP_BYTES if path.suffix == ".dump" else _LARGEST_MAP_BYTES
    if not stat.S_ISREG(found.st_mode) or found.st_size > largest:
        return "is no file of a sensible size"
    if period is None:
        return "cannot be compared with the time of the recording, which is not known"
    start, end = period
    if found.st_mtime_ns < start - _SLACK_NS:
        return "is older than the recording"
    if found.st_mtime_ns > end + _SLACK_NS and not 0 < started_ns <= end + _SLACK_NS:
        return "was written after the recording, perhaps by another process"
    return None


def _read(path: Path, pid: int) -> CodeMap:
    try:
        with path.open("rb") as stream:
            return parse_jit_dump(stream, pid) if path.suffix == ".dump" else parse_perf_map(stream)
    except OSError:
        return parse_perf_map(())
