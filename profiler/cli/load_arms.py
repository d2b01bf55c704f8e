"""Selectors to arms: what the store and files hold, loaded with all runs in order."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.cli.context import CliContext, existing_store
from profiler.errors import StoreError, UsageError
from profiler.model.standard_input import STANDARD_INPUT
from profiler.stored_arms import check_runs, distinct_names, load_runs

if TYPE_CHECKING:
    from profiler.model.capture import Capture
    from profiler.pipeline import Arm
    from profiler.store.selectors import Selection
    from profiler.store.store import Store
    from symbolize.locate import Locator


def load_arms(
    selectors: Sequence[str],
    context: CliContext,
    locator: Locator,
    progress: Callable[[str], None],
    needs_profile: bool = True,
) -> tuple[Arm, ...]:
    """One arm per selector, in order, under distinct names; without ``needs_profile`` also such that have only plain runs.

    ``UsageError``: unknown or empty selection.  ``FormatError``: a file that is not a recording.
    """
    from profiler.pipeline import Arm
    from profiler.store.selectors import resolve

    store = _store_if_needed(selectors, context)
    selections = [resolve(selector, store) for selector in selectors]
    _check_standard_input(selections)
    names = distinct_names([selection.label for selection in selections], selectors)
    arms = []
    for name, selection in zip(names, selections, strict=True):
        captures = _captures(selection, store, locator, progress)
        check_runs(name, captures, needs_profile)
        arms.append(Arm(name, captures))
    return tuple(arms)


def _store_if_needed(selectors: Sequence[str], context: CliContext) -> Store | None:
    """A store that cannot be opened is no reason to refuse files."""
    try:
        return existing_store(context)
    except (StoreError, PermissionError):
        names = [Path(selector.partition("=")[2] or selector) for selector in selectors]
        if all(name == STANDARD_INPUT or name.exists() for name in names):
            return None
        raise


def _check_standard_input(selections: Sequence[Selection]) -> None:
    """It can be read once, and somebody has to write to it."""
    count = sum(STANDARD_INPUT in selection.files for selection in selections)
    if count > 1:
        raise UsageError("'-' is standard input, which can be read only once: name the other recordings by their files")
    if count and (sys.stdin is None or sys.stdin.isatty()):
        raise UsageError("'-' is standard input, and nothing is piped into it: perf record -o - CMD | slotscope report -")


def _captures(
    selection: Selection, store: Store | None, locator: Locator, progress: Callable[[str], None]
) -> tuple[Capture, ...]:
    if store is not None and selection.runs:
        return load_runs(selection, store, progress)
    return _file_captures(selection, locator, progress)


def _file_captures(selection: Selection, locator: Locator, progress: Callable[[str], None]) -> tuple[Capture, ...]:
    from collectors.recording_file import read_runs

    captures: list[Capture] = []
    for place, path in enumerate(selection.files, 1):
        shown = "standard input" if path == STANDARD_INPUT else path
        progress(f"reading {shown} ({place} of {len(selection.files)})")
        captures.extend(read_runs(path, locator, progress, selection.part))
    copies = CopyCheck()
    for capture in captures if len(captures) > 1 else ():
        copies.add(capture)
    return tuple(captures)


class CopyCheck:
    """Copies of one recording would count as independent runs of an arm, and make every interval too narrow."""

    def __init__(self) -> None:
        self._seen: dict[bytes, str] = {}

    def add(self, capture: Capture) -> None:
        """``UsageError`` when another file of the arm holds the same samples."""
        if not len(capture.samples):
            return
        first = self._seen.setdefault(_fingerprint(capture), capture.info.source)
        if first != capture.info.source:
            raise UsageError(f"{capture.info.source} holds the same samples as {first}: one run counts once, name one of them")


def _fingerprint(capture: Capture) -> bytes:
    """Equal for recordings of the same samples: their times, processes, threads and weights."""
    import hashlib

    samples, threads = capture.samples, capture.threads
    columns = (samples.time_ns, threads.pid[samples.thread], threads.tid[samples.thread], samples.event, samples.weight)
    digest = hashlib.sha256()
    for column in columns:
        digest.update(column.tobytes())
    return digest.digest()
