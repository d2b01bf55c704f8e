"""How call stacks of a program are recorded: how ``auto`` decides."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from profiler.errors import FormatError
from profiler.experiment.binaries.shared_objects import SharedObjects
from profiler.experiment.plan.call_graph_request import CallGraphRequest
from profiler.model.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class CallGraph:
    """What is recorded: ``mode`` without "auto", ``dump_bytes`` 0 unless dwarf, and why, in a few words."""

    mode: str
    dump_bytes: int
    reason: str


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
