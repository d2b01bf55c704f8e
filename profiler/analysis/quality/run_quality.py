"""What one run's admitted weight consists of, as far as trust is concerned: integers that add up over runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import numpy as np

from profiler.analysis.attribution.attributed_run import AttributedRun
from profiler.analysis.attribution.stack_patterns import stacks_through
from profiler.analysis.statistics.exact_sums import sums_by_group
from profiler.model.arrays import BoolColumn, Int32Column, distinct
from profiler.model.capture import Capture
from profiler.model.dso import Dso, DsoKind
from profiler.model.frame_table import CpuMode
from profiler.model.function import NameSource
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import CaptureInfo
from profiler.model.sample_table import StackState
from profiler.model.symbols import NO_CAVEATS, FileCaveats

NO_SYMBOL = "no symbol covers it"
_WORD_BITS = 64
_COMM_LENGTH = 15  # the kernel cuts names of processes to 15 bytes


@dataclass(frozen=True, slots=True)
class UnnamedDso:
    """``weight`` of the samples with a frame in this DSO that has no name, and why; ``build_id`` lower-case hex."""

    path: str
    build_id: str
    reason: str
    weight: int


@dataclass(frozen=True, slots=True)
class DoubtfulFile:
    """A file that named frames and has caveats.  ``weight`` of the samples with a frame in it, ``own`` of those whose innermost
    frame is; ``is_newer``: it was changed after the recording."""

    caveats: FileCaveats
    is_newer: bool
    weight: int
    own: int


@dataclass(frozen=True, slots=True)
class UnwindingEnd:
    """``weight`` of the rootless samples whose outermost frame is in this DSO."""

    path: str
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
    doubtful: tuple[DoubtfulFile, ...] = ()
    rootless_in: tuple[UnwindingEnd, ...] = ()


def run_quality(run: AttributedRun) -> RunQuality:
    """Sums of one run; a sample counts with its weight."""
    capture, stacks = run.symbolized.capture, run.stacks
    sample_weight = capture.samples.weight[run.admitted]
    state = np.minimum(capture.samples.state[run.admitted], len(StackState) - 1)
    source = run.symbolized.functions.sources()[stacks.function()]
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
        doubtful=_doubtful(run),
        rootless_in=_rootless_in(run),
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
    status = {outcome.dso: outcome.status for outcome in run.symbolized.outcomes}
    rows = [row for row in distinct(dso[is_unresolved]).tolist() if row >= 0]
    weights = _weights_through(run, [is_unresolved & (dso == row) for row in rows])
    found = []
    for row, weight in zip(rows, weights, strict=True):
        if weight:
            entry = run.symbolized.capture.dsos[row]
            found.append(UnnamedDso(entry.path, entry.build_id.hex(), status.get(row, "") or NO_SYMBOL, weight))
    return tuple(found)


def _weights_through(run: AttributedRun, wanted: Sequence[BoolColumn]) -> list[int]:
    """The weight of the stacks with a row where the column holds, for each of the columns."""
    loaded = np.flatnonzero(run.weight > 0)
    weight = run.weight[loaded]
    sums: list[int] = []
    for first in range(0, len(wanted), _WORD_BITS):
        columns = wanted[first : first + _WORD_BITS]
        bits = np.zeros(len(run.stacks), np.uint64)
        for number, column in enumerate(columns):
            bits[column] |= np.uint64(1 << number)
        for level in run.stacks.levels[1:]:
            bits[level] |= bits[run.stacks.prefix[level]]
        found = bits[loaded]
        sums += [int(weight[(found & np.uint64(1 << number)) != 0].sum()) for number in range(len(columns))]
    return sums


def _doubtful(run: AttributedRun) -> tuple[DoubtfulFile, ...]:
    capture = run.symbolized.capture
    dso = run.stacks.places.dso[run.stacks.place]
    recorded_ns = _recorded_ns(capture.info)
    found = []
    for outcome in run.symbolized.outcomes:
        caveats = outcome.caveats
        if caveats != NO_CAVEATS:
            is_in = dso == outcome.dso
            weight, own = (int(run.weight[rows].sum()) for rows in (stacks_through(run.stacks, is_in), is_in))
            is_newer = bool(caveats.unverified and recorded_ns and caveats.changed_ns > recorded_ns)
            found.append(DoubtfulFile(caveats, is_newer, weight, own))
    return tuple(found)


def _recorded_ns(info: CaptureInfo) -> int:
    """When the run began or, for an imported one, by when it was over, in ns since 1970; 0 = not known."""
    stamp = info.started_at or info.source_changed_at
    try:
        return int(datetime.fromisoformat(stamp).timestamp() * 1e9) if stamp else 0
    except ValueError:
        return 0


def _rootless_in(run: AttributedRun) -> tuple[UnwindingEnd, ...]:
    capture = run.symbolized.capture
    chosen = run.admitted & (capture.samples.state == StackState.ROOTLESS)
    if not chosen.any():
        return ()
    outermost = _outermost(capture.stacks.prefix, capture.samples.stack[chosen])
    dso = capture.frames.dso[capture.stacks.frame[outermost]]
    weight = sums_by_group(np.maximum(dso, 0), capture.samples.weight[chosen], len(capture.dsos))
    return tuple(UnwindingEnd(capture.dsos[row].path, int(weight[row])) for row in np.flatnonzero(weight).tolist())


def _outermost(prefix: Int32Column, stack: Int32Column) -> Int32Column:
    """The row of each stack's outermost frame."""
    root = np.where(prefix >= 0, prefix, np.arange(len(prefix), dtype=np.int32))
    while True:
        further = root[root]  # twice as far out with every step
        if np.array_equal(further, root):
            return root[stack]
        root = further
