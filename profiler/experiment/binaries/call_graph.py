"""How call stacks are recorded, and how ``auto`` decides."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from profiler.errors import FormatError, UsageError
from profiler.experiment.binaries.shared_objects import SharedObjects

DEFAULT_DUMP_BYTES = 16384
LARGEST_DUMP_BYTES = 65528  # perf's limit: the record's size is 16 bits wide
_MODES = ("auto", "fp", "dwarf", "lbr", "none")
_REQUEST = re.compile(r"(\w+)(?:,(\d+))?")


@dataclass(frozen=True, slots=True)
class CallGraphRequest:
    """``mode``: "auto", "fp", "dwarf", "lbr" or "none".  ``dump_bytes``: of user stack per sample, for dwarf."""

    mode: str = "auto"
    dump_bytes: int = DEFAULT_DUMP_BYTES


@dataclass(frozen=True, slots=True)
class CallGraph:
    """What is recorded: ``mode`` without "auto", ``dump_bytes`` 0 unless dwarf, and why, in a few words."""

    mode: str
    dump_bytes: int
    reason: str


def parse_call_graph(text: str) -> CallGraphRequest:
    """The value of ``--call-graph``.  ``UsageError`` for an unknown mode or a size that perf cannot take."""
    match = _REQUEST.fullmatch(text)
    if match is None or match[1] not in _MODES or (match[2] and match[1] != "dwarf"):
        raise UsageError(f"--call-graph {text!r}: expected auto, fp, dwarf[,SIZE], lbr or none")
    size = int(match[2]) if match[2] else DEFAULT_DUMP_BYTES
    if not 8 <= size <= LARGEST_DUMP_BYTES or size % 8:
        raise UsageError(f"--call-graph {text!r}: the size is a multiple of 8 from 8 to {LARGEST_DUMP_BYTES} bytes")
    return CallGraphRequest(match[1], size)


def choose_call_graph(
    request: CallGraphRequest, executable: Path, objects: SharedObjects, keeps_frame_pointers: Callable[[Path], bool]
) -> CallGraph:
    """The request itself, or for "auto": frame pointers when the executable and every shared object keep them, since one that
    does not breaks the chain for all of its callers; otherwise stack dumps."""
    if request.mode != "auto":
        return CallGraph(request.mode, request.dump_bytes if request.mode == "dwarf" else 0, "asked for")
    obstacle = _obstacle(executable, objects, keeps_frame_pointers)
    if obstacle:
        return CallGraph("dwarf", request.dump_bytes, obstacle)
    return CallGraph("fp", 0, "the program and all of its shared objects keep frame pointers")


def _obstacle(executable: Path, objects: SharedObjects, keeps_frame_pointers: Callable[[Path], bool]) -> str:
    try:
        if not keeps_frame_pointers(executable):
            return f"{executable.name} does not keep frame pointers"
        for needed in objects.closure(executable):
            if needed.path is None:
                return f"{needed.name} was not found, so nothing is known of its frame pointers"
            if not keeps_frame_pointers(needed.path):
                return f"{needed.name} does not keep frame pointers"
    except FormatError as error:
        return f"{Path(error.source).name}: {error.reason}"
    return ""
