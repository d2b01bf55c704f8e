"""One process that is profiled, from when it was found until it ends: what it is, and how it is recorded."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from collectors.targets.attach_target import AttachTarget, foreign_root, readable_program, recorded_path
from profiler.attach.plan import AttachPlan
from profiler.errors import CaptureError, FormatError
from profiler.experiment.binaries.call_graph import CallGraph, choose_call_graph
from profiler.experiment.binaries.program_facts import facts_of_file, keeps_frame_pointers
from profiler.experiment.binaries.shared_objects import SharedObjects
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import PerfSettings, ProgramFacts
from symbolize.locate import Locator, SearchPaths

_DELETED = " (deleted)"


@dataclass(frozen=True, slots=True)
class AttachedInstance:
    """``descriptor``: readable when the process has ended.  ``locator``: finds its files, in its own root directory too.
    ``has_own_files``: it may see other files than slotscope."""

    target: AttachTarget
    program: ProgramFacts
    perf: PerfSettings
    locator: Locator
    descriptor: int
    has_own_files: bool


@contextlib.contextmanager
def attached_instance(target: AttachTarget, plan: AttachPlan, perf_version: str) -> Iterator[AttachedInstance]:
    """``CaptureError`` when the process has ended."""
    with contextlib.ExitStack() as stack:
        try:
            descriptor = os.pidfd_open(target.pid)
        except OSError:
            raise CaptureError(_ended(target)) from None
        stack.callback(os.close, descriptor)
        if not target.is_there():  # else the descriptor could be that of another process with its ID
            raise CaptureError(_ended(target))
        root = foreign_root(target.pid)
        if root >= 0:
            stack.callback(os.close, root)
        locator = Locator(SearchPaths(extra_directories=(Path(f"/proc/self/fd/{root}"),))) if root >= 0 else Locator()
        settings = _settings(target, plan, perf_version)
        yield AttachedInstance(target, _program_facts(target), settings, locator, descriptor, has_own_files=root >= 0)


def _ended(target: AttachTarget) -> str:
    return f"process {target.pid} ({target.name}) ended while slotscope attached to it"


def _program_facts(target: AttachTarget) -> ProgramFacts:
    """Of the file that is executed, which need not be there under its name any more."""
    program = readable_program(target)
    return ProgramFacts(path=target.name) if program is None else facts_of_file(program, recorded_path(program))


def _settings(target: AttachTarget, plan: AttachPlan, perf_version: str) -> PerfSettings:
    chosen = _call_graph(target, plan)
    return PerfSettings(
        event=plan.event,
        frequency_hz=plan.frequency_hz,
        call_graph=chosen.mode,
        call_graph_reason=chosen.reason,
        dump_bytes=chosen.dump_bytes,
        perf_version=perf_version,
    )


def _call_graph(target: AttachTarget, plan: AttachPlan) -> CallGraph:
    """As for a program that is started; what is mapped now takes the place of what would be loaded."""
    if plan.call_graph.mode != "auto":
        return choose_call_graph(plan.call_graph, Path(), SharedObjects(), keeps_frame_pointers)
    obstacle = _obstacle(target)
    if obstacle:
        return CallGraph("dwarf", plan.call_graph.dump_bytes, obstacle)
    return CallGraph("fp", 0, "the program and all that it has mapped keep frame pointers")


def _obstacle(target: AttachTarget) -> str:
    """Why frame pointers do not do, "" when they do."""
    root = Path("/proc", str(target.pid), "root")
    try:
        paths = _mapped_code(target.pid)
    except OSError:
        return "what is mapped cannot be read, so nothing is known of its frame pointers"
    for path in paths:
        name = Path(path).name
        if path.endswith(_DELETED):
            return f"{name.removesuffix(_DELETED)} was replaced, so nothing is known of its frame pointers"
        try:
            if not keeps_frame_pointers(root / path.lstrip("/")):
                return f"{name} does not keep frame pointers"
        except FormatError as error:
            return f"{name}: {error.reason}"
    return ""


def _mapped_code(pid: int) -> list[str]:
    """Files with executable mappings, each once, in the order of their addresses."""
    lines = Path("/proc", str(pid), "maps").read_text(errors="surrogateescape").splitlines()
    fields = [line.split(maxsplit=5) for line in lines]
    return list(dict.fromkeys(field[5] for field in fields if len(field) == 6 and "x" in field[1] and field[5].startswith("/")))
