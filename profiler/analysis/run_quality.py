"""What one run's admitted weight consists of, as far as trust is concerned: integers that add up over runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from profiler.analysis.attributed_run import AttributedRun
from profiler.analysis.exact_sums import sums_by_group
from profiler.analysis.stack_patterns import stacks_through
from profiler.model.arrays import BoolColumn, distinct
from profiler.model.capture import Capture
from profiler.model.dso import Dso, DsoKind
from profiler.model.frame_table import CpuMode
from profiler.model.sample_table import StackState
from profiler.model.symbols import NameSource

NO_SYMBOL = "no symbol covers it"
_COMM_LENGTH = 15  # the kernel cuts names of processes to 15 bytes


@dataclass(frozen=True, slots=True)
class UnnamedDso:
    """``weight`` of the samples with a frame in this DSO that has no name, and why; ``build_id`` lower-case hex."""

    path: str
    build_id: str
    reason: str
    weight: int


@dataclass(frozen=True, slots=True)
class RunQuality:
    """Weights in the event's unit.  ``by_state``: per ``StackState``.  ``folded``: innermost frame in the kernel, own time
    passed over to a user frame.  ``own``, ``own_with_debug``: innermost frame in the program's own executable, and the part
    in units with DWARF."""

    weight: int
    samples: int
    by_state: tuple[int, ...]
    unresolved: int
    folded: int
    own: int
    own_with_debug: int
    partial: int
    heaviest_sample: int
    unnamed: tuple[UnnamedDso, ...]


def run_quality(run: AttributedRun) -> RunQuality:
    """Sums of one run; a sample counts with its weight."""
    capture, stacks = run.symbolized.capture, run.stacks
    sample_weight = capture.samples.weight[run.admitted]
    state = np.minimum(capture.samples.state[run.admitted], len(StackState) - 1)
    sources = np.array([function.name_source for function in run.symbolized.functions], np.uint8)
    source = sources[stacks.function()]
    is_kernel = stacks.mode == CpuMode.KERNEL
    in_own = _in_own_executable(run)
    self_row = run.attribution.self_row
    return RunQuality(
        weight=run.total,
        samples=len(sample_weight),
        by_state=tuple(sums_by_group(state, sample_weight, len(StackState)).tolist()),
        unresolved=int(run.weight[source == NameSource.UNRESOLVED].sum()),
        folded=int(run.weight[is_kernel & ~is_kernel[self_row]].sum()),
        own=int(run.weight[in_own].sum()),
        own_with_debug=int(run.weight[in_own & (stacks.has_debug_info > 0)].sum()),
        partial=int(run.weight[source[self_row] == NameSource.PARTIAL].sum()),
        heaviest_sample=int(sample_weight.max(initial=0)),
        unnamed=_unnamed(run, source == NameSource.UNRESOLVED),
    )


def own_executable(capture: Capture, process_name: str) -> tuple[int, ...]:
    """DSO rows of the profiled program's own file: by build ID, else by path, else by the name of the process."""
    program = capture.info.program
    tests: tuple[Mapping[int, bool], ...] = (
        {row: bool(program.build_id) and dso.build_id.hex() == program.build_id for row, dso in enumerate(capture.dsos)},
        {row: bool(program.path) and dso.path == program.path for row, dso in enumerate(capture.dsos)},
        {row: _is_named_after(dso, process_name) for row, dso in enumerate(capture.dsos)},
    )
    for test in tests:
        found = tuple(row for row, holds in test.items() if holds and capture.dsos[row].kind is DsoKind.FILE)
        if found:
            return found
    return ()


def _is_named_after(dso: Dso, process_name: str) -> bool:
    # Both names may hold bytes that are no UTF-8, and the cut may fall inside of a character: compared as bytes.
    name = dso.name.encode("utf-8", "surrogateescape")[:_COMM_LENGTH]
    is_same = name == process_name.encode("utf-8", "surrogateescape")
    return bool(process_name) and is_same and ".so" not in dso.name


def heaviest_process(run: AttributedRun) -> str:
    """Name of the process with most admitted weight, ties by name; "" without samples."""
    capture = run.symbolized.capture
    weight = sums_by_group(capture.samples.thread[run.admitted], capture.samples.weight[run.admitted], len(capture.threads.pid))
    by_name: dict[str, int] = {}
    for string, own in zip(capture.threads.process_name.tolist(), weight.tolist(), strict=True):
        if own and string >= 0:
            by_name[capture.strings[string]] = by_name.get(capture.strings[string], 0) + own
    return min(by_name, key=lambda name: (-by_name[name], name), default="")


def _in_own_executable(run: AttributedRun) -> BoolColumn:
    rows = own_executable(run.symbolized.capture, heaviest_process(run))
    return np.isin(run.stacks.places.dso, rows)[run.stacks.place]


def _unnamed(run: AttributedRun, is_unresolved: BoolColumn) -> tuple[UnnamedDso, ...]:
    dso = run.stacks.places.dso[run.stacks.place]
    loaded = run.weight > 0
    status = {outcome.dso: outcome.status for outcome in run.symbolized.outcomes}
    found = []
    for row in distinct(dso[is_unresolved]).tolist():
        weight = int(run.weight[loaded & stacks_through(run.stacks, is_unresolved & (dso == row))].sum())
        if weight and row >= 0:
            entry = run.symbolized.capture.dsos[row]
            found.append(UnnamedDso(entry.path, entry.build_id.hex(), status.get(row, "") or NO_SYMBOL, weight))
    return tuple(found)
