"""Phases: a marker function on one thread defines time windows that choose samples.

A window runs from a thread's first sample whose stack carries the marker over that thread's following samples, until one
whose stack is complete and does not carry it; that sample's time ends the window and is outside it.  An incomplete stack
never ends a window, and time without samples belongs to it.  A window that is still open at the thread's last sample ends
with that sample, which it contains.
"""

from __future__ import annotations

import numpy as np

from profiler.model.analysis_choices import PhaseScope
from profiler.model.arrays import BoolColumn, Int64Column, UInt64Column, distinct
from profiler.model.capture import Capture
from profiler.model.quick_dataclass import dataclass
from profiler.model.sample_table import StackState


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PhaseSelection:
    """``admitted``: bool[samples].  ``windows_ns``: summed length of the windows, overlaps within one scope counted once.
    ``marked_samples``: samples whose own stack carries the marker; 0 means that the phase was not found.  ``unproven``:
    bool[samples], in a window of their own thread without the marker, with a stack that is too incomplete to end it."""

    admitted: BoolColumn
    windows_ns: int
    marked_samples: int
    unproven: BoolColumn


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Windows:
    """``scope``: number of the thread, process or host; times in ns, ``end_ns`` is outside the window."""

    scope: Int64Column
    start_ns: UInt64Column
    end_ns: UInt64Column


def select_phase(capture: Capture, is_marked: BoolColumn, scope: PhaseScope) -> PhaseSelection:
    """Chooses samples.  ``is_marked``: bool[samples], the sample's stack carries the marker.

    Samples of all events take part in finding the windows.  A thread is a (pid, tid) pair, whatever it is called.
    """
    samples = capture.samples
    thread = _thread_numbers(capture)
    order = np.lexsort((samples.time_ns, thread))
    ends_window = (samples.state == StackState.COMPLETE) & ~is_marked
    inside_sorted = _inside(thread[order], is_marked[order], ends_window[order])
    inside = np.zeros(len(samples), np.bool_)
    inside[order] = inside_sorted
    scopes = _scope_numbers(capture, thread, scope)
    windows = _merged(_windows(thread[order], samples.time_ns[order], scopes[order], inside_sorted))
    admitted = inside if scope is PhaseScope.THREAD else inside | _covered(windows, scopes, samples.time_ns)
    windows_ns = int((windows.end_ns - windows.start_ns).sum())
    return PhaseSelection(admitted, windows_ns, int(is_marked.sum()), inside & ~is_marked)


def _thread_numbers(capture: Capture) -> Int64Column:
    """A number per sample that is equal for samples of one (pid, tid), whatever the thread was called."""
    pid, tid = capture.threads.pid.astype(np.int64), capture.threads.tid.astype(np.int64)
    _, number = np.unique((pid << 32) ^ (tid & 0xFFFFFFFF), return_inverse=True)
    numbers: Int64Column = number.astype(np.int64)
    return numbers[capture.samples.thread]


def _scope_numbers(capture: Capture, thread: Int64Column, scope: PhaseScope) -> Int64Column:
    if scope is PhaseScope.THREAD:
        return thread
    if scope is PhaseScope.HOST:
        return np.zeros(len(capture.samples), np.int64)
    return capture.threads.pid.astype(np.int64)[capture.samples.thread]


def _inside(thread: Int64Column, is_marked: BoolColumn, ends_window: BoolColumn) -> BoolColumn:
    """Samples sorted by thread and time: those within a window of their own thread."""
    position = np.arange(len(thread))
    decider = np.maximum.accumulate(np.where(is_marked | ends_window, position, -1))
    is_known = (decider >= 0) & (thread[decider] == thread)
    inside: BoolColumn = is_known & is_marked[decider]
    return inside


def _windows(thread: Int64Column, time_ns: UInt64Column, scope: Int64Column, inside: BoolColumn) -> _Windows:
    same_as_before = np.zeros(len(thread), np.bool_)
    same_as_before[1:] = thread[1:] == thread[:-1]
    was_inside = np.zeros(len(thread), np.bool_)
    was_inside[1:] = inside[:-1]
    starts = np.flatnonzero(inside & ~(was_inside & same_as_before))
    leaves = np.flatnonzero(was_inside & ~(inside & same_as_before))
    if len(leaves) < len(starts):
        leaves = np.append(leaves, len(thread))
    ends_by_sample = np.append(same_as_before, False)[leaves]
    end_ns = np.where(ends_by_sample, np.append(time_ns, np.uint64(0))[leaves], time_ns[leaves - 1] + np.uint64(1))
    return _Windows(scope[starts], time_ns[starts], end_ns)


def _merged(windows: _Windows) -> _Windows:
    """Windows of one scope that overlap or touch, joined; sorted by scope, then by start."""
    if not len(windows.scope):
        return windows
    order = np.lexsort((windows.start_ns, windows.scope))
    scope, start_ns, end_ns = windows.scope[order], windows.start_ns[order], windows.end_ns[order]
    kept: list[tuple[int, int, int]] = []
    for row in zip(scope.tolist(), start_ns.tolist(), end_ns.tolist(), strict=True):
        if kept and kept[-1][0] == row[0] and row[1] <= kept[-1][2]:
            kept[-1] = (row[0], kept[-1][1], max(kept[-1][2], row[2]))
        else:
            kept.append(row)
    scopes, starts, ends = zip(*kept, strict=True)
    return _Windows(np.array(scopes, np.int64), np.array(starts, np.uint64), np.array(ends, np.uint64))


def _covered(windows: _Windows, scope: Int64Column, time_ns: UInt64Column) -> BoolColumn:
    """Samples whose time lies in a window of their scope; ``windows`` as made by ``_merged``."""
    if not len(windows.scope):
        return np.zeros(len(scope), np.bool_)
    scopes = distinct(windows.scope)
    starts = distinct(windows.start_ns)
    radix = len(starts) + 1
    window_key = np.searchsorted(scopes, windows.scope) * radix + np.searchsorted(starts, windows.start_ns, side="right")
    scope_number = np.searchsorted(scopes, scope)
    sample_key = scope_number * radix + np.searchsorted(starts, time_ns, side="right")
    window = np.searchsorted(window_key, sample_key, side="right") - 1
    covered: BoolColumn = (window >= 0) & (windows.scope[window] == scope) & (time_ns < windows.end_ns[window])
    return covered
