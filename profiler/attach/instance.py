"""One process that is profiled, from when it was found until it ends: what it is, and how it is recorded."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from collectors.targets.attach_target import AttachTarget, readable_program, recorded_path
from collectors.targets.mapped_files import mapped_files, root_directory, root_identity
from profiler.attach.own_files import OwnFiles
from profiler.attach.plan import AttachPlan
from profiler.errors import CaptureError, FormatError
from profiler.experiment.binaries.call_graph import CallGraph, choose_call_graph
from profiler.experiment.binaries.program_facts import facts_of_file, keeps_frame_pointers
from profiler.experiment.binaries.shared_objects import SharedObjects
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import PerfSettings, ProgramFacts
from symbolize.locate import Locator, SearchPaths
from symbolize.root_directory import RootDirectory


@dataclass(frozen=True, slots=True)
class AttachedInstance:
    """``descriptor``: readable when the process has ended.  ``locator``: finds its files, in its own root directory if that is
    not slotscope's.  ``own_files``: which they are, where paths do not tell."""

    target: AttachTarget
    program: ProgramFacts
    perf: PerfSettings
    locator: Locator
    descriptor: int
    own_files: OwnFiles


@contextlib.contextmanager
def attached_instance(
    target: AttachTarget, plan: AttachPlan, perf_version: str, shared: Locator | None = None
) -> Iterator[AttachedInstance]:
    """``CaptureError`` when the process has ended.  ``shared``: used where the process sees the files of slotscope, so that the
    kernel's symbols are read, and held, once for all processes of a session; None = one of its own."""
    with contextlib.ExitStack() as stack:
        try:
            descriptor = os.pidfd_open(target.pid)
        except OSError:
            raise CaptureError(_ended(target)) from None
        stack.callback(os.close, descriptor)
        if not target.is_there():  # else the descriptor could be that of another process with its ID
            raise CaptureError(_ended(target))
        root = _foreign_root(target, stack)
        locator = Locator(SearchPaths(sysroot=root)) if root is not None or shared is None else shared
        locator.let_go(0)  # files may be others since the process before
        settings = _settings(target, plan, perf_version)
        yield AttachedInstance(target, _program_facts(target), settings, locator, descriptor, OwnFiles(locator))


def _foreign_root(target: AttachTarget, stack: contextlib.ExitStack) -> RootDirectory | None:
    """None when it is slotscope's own.  ``stack``: holds it, since it is needed when the process has ended."""
    if root_identity(target.pid) == root_identity("self"):
        return None
    root = root_directory(target.pid)
    try:
        descriptor = os.open(root.path, os.O_PATH | os.O_DIRECTORY)
    except OSError:
        return root  # nothing is found in it, but nothing in slotscope's own instead
    stack.callback(os.close, descriptor)
    return RootDirectory(Path(f"/proc/self/fd/{descriptor}"), root.shown_as)


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
    root = root_directory(target.pid)
    try:
        files = mapped_files(target.pid)
    except OSError:
        return "what is mapped cannot be read, so nothing is known of its frame pointers"
    for file in files:
        name = Path(file.plain_path).name
        if file.is_deleted:
            return f"{name} was replaced, so nothing is known of its frame pointers"
        try:
            if not keeps_frame_pointers(root.file(file.path)):
                return f"{name} does not keep frame pointers"
        except FormatError as error:
            return f"{name}: {error.reason}"
    return ""
