"""Selectors to arms: what the store and files hold, loaded with all runs in order."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.cli.context import CliContext, existing_store
from profiler.errors import StoreError, UsageError
from profiler.model.run import RunMode
from profiler.model.standard_input import STANDARD_INPUT
from reports.quantities import counted

if TYPE_CHECKING:
    from profiler.model.capture import Capture
    from profiler.pipeline import Arm
    from profiler.store.selectors import Selection
    from profiler.store.store import Store
    from symbolize.locate import Locator
    from symbolize.symbolizer import Symbolizer


@dataclass(frozen=True, slots=True)
class SymbolTools:
    """One search for binaries, shared by unwinding and symbolization."""

    locator: Locator
    symbolizer: Symbolizer


def symbol_tools(debug_dirs: Sequence[str], store_directory: Path | None = None) -> SymbolTools:
    """``store_directory``: debug files that agents sent to it are found too.  ``UsageError`` when a directory of ``debug_dirs``
    does not exist."""
    from profiler.store.debug_tree import debug_directory
    from symbolize.cache import SymbolCache, default_cache_directory
    from symbolize.debuginfod import configured_servers
    from symbolize.kernel_cache import KernelSymbolCache
    from symbolize.locate import Locator, SearchPaths
    from symbolize.symbolizer import Symbolizer
    from symbolize.unwind_cache import UnwindRuleCache

    for directory in debug_dirs:
        if not Path(directory).is_dir():
            raise UsageError(f"--debug-dir {directory}: no such directory")
    cache_directory = default_cache_directory()
    cache = SymbolCache(cache_directory)
    extra = tuple(Path(directory) for directory in debug_dirs)
    sent = (debug_directory(store_directory),) if store_directory is not None else ()
    search = SearchPaths((*sent, *SearchPaths().debug_directories), extra, debuginfod_urls=configured_servers())
    locator = Locator(search, KernelSymbolCache(cache_directory), UnwindRuleCache(cache))
    return SymbolTools(locator, Symbolizer(locator, cache))


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
        _check_runs(name, captures, needs_profile)
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


def recorded_phase(arms: Sequence[Arm]) -> str:
    """The phase that the recordings were made for, "" = none.  ``UsageError`` when they disagree."""
    phases = sorted({capture.info.phase for arm in arms for capture in arm.captures})
    if len(phases) > 1:
        shown = " and ".join(repr(phase) for phase in phases)
        raise UsageError(f"recorded for different phases, {shown}: choose with --phase ('' = all time)")
    return phases[0] if phases else ""


def distinct_names(labels: Sequence[str], selectors: Sequence[str]) -> tuple[str, ...]:
    """The labels; where two are equal their selectors, and where those are equal too a number behind."""
    names = [label if labels.count(label) == 1 else selector for label, selector in zip(labels, selectors, strict=True)]
    seen: dict[str, int] = {}
    distinct = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        distinct.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return tuple(distinct)


def _captures(
    selection: Selection, store: Store | None, locator: Locator, progress: Callable[[str], None]
) -> tuple[Capture, ...]:
    if store is not None and selection.runs:
        loaded = []
        for place, run in enumerate(selection.runs, 1):
            progress(f"{selection.label}: loading run {place} of {len(selection.runs)}")
            loaded.append(store.load(run))
        return tuple(loaded)
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


def _check_runs(name: str, captures: Sequence[Capture], needs_profile: bool) -> None:
    if not captures:
        raise UsageError(f"{name}: no runs and no files in this selection; `slotscope list` shows what there is")
    profiled = [capture for capture in captures if capture.info.identity.mode is not RunMode.PLAIN]
    what = "profiled run" if profiled else "run"
    usable = captures if not needs_profile else profiled or captures
    if failures := _failures_of_all(usable):
        raise UsageError(f"{name}: every {what} failed ({failures[0]}); `slotscope show` tells more")
    if not profiled and needs_profile:
        raise UsageError(f"{name}: {_no_profile(captures)}")


def _no_profile(captures: Sequence[Capture]) -> str:
    source = captures[0].info.source
    if source:
        return f"{source} holds times of {counted(len(captures), 'run')} and no profile: `slotscope compare` can use it"
    runs = f"{counted(len(captures), 'run')} of session {captures[0].info.identity.session}"
    return f"no profile in its {runs}, which was cut short or made with `--profile none`: record again, or name another session"


def _failures_of_all(captures: Sequence[Capture]) -> list[str]:
    """Why each run failed; empty when one did not."""
    failures = [capture.info.outcome.failure for capture in captures]
    return failures if all(failures) else []
