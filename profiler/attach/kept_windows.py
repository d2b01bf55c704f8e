"""What is kept of a session: every window that was recorded is read, put in the store, and told of."""

from __future__ import annotations

from dataclasses import field, replace

from profiler.attach.observer import AttachObserver
from profiler.attach.reading import READING_IS_BEHIND, ReadableWindow, WindowReader
from profiler.attach.window import WindowOutcome
from profiler.experiment.run.phase_check import check_phase
from profiler.model.attach_summary import KeptWindow
from profiler.model.capture import Capture
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import RunKey, RunOutcome
from profiler.store.store import Store
from reports.attach_lines import window_line
from symbolize.locate import Locator


@dataclass(frozen=True, slots=True)
class CountedOutcome:
    """``note``: what readers of a window that counts must know of it, "" = nothing."""

    outcome: RunOutcome
    note: str


@dataclass(slots=True)
class KeptWindows:
    """A context manager; what is not read at its end is given up.  ``phase``: looked for in the first window that counts."""

    store: Store
    observer: AttachObserver
    phase: str
    windows: list[KeptWindow] = field(default_factory=list)
    _has_whole: bool = False
    _is_phase_checked: bool = False
    _reader: WindowReader = field(init=False)

    def __enter__(self) -> KeptWindows:
        self._reader = WindowReader(self.store, self._kept)
        self._reader.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.__exit__()

    def count(self, found: WindowOutcome, failure: str = "") -> CountedOutcome:
        """Whether the window counts in comparisons: one that was cut short does unless whole ones came before.  ``failure``:
        why it does not in any case."""
        reason = failure or (found.note if not found.is_whole and self._has_whole else "")
        self._has_whole |= found.is_whole and not failure
        return CountedOutcome(replace(found.outcome, failure=reason), "" if reason else found.note)

    def submit(self, window: ReadableWindow) -> None:
        """Raises what went wrong with an earlier one."""
        if self._reader.is_behind:
            self.observer.told(READING_IS_BEHIND)
        self._reader.submit(window)

    def wait(self) -> None:
        """Until everything that was submitted is in the store.  ``StoreError``, or whatever went wrong."""
        self._reader.wait()

    def _kept(self, key: RunKey, capture: Capture, window: ReadableWindow) -> None:
        """Called when a window is in the store, by the thread that reads them."""
        kept = _summed(key, capture, window)
        self.windows.append(kept)
        self.observer.told(window_line(kept))
        self.observer.window_kept(kept)
        self._check_phase(capture, window.locator)

    def _check_phase(self, capture: Capture, locator: Locator) -> None:
        if self.phase and not self._is_phase_checked and not capture.info.outcome.failure:
            check_phase(capture, self.phase, locator)
            self._is_phase_checked = True


def _summed(key: RunKey, capture: Capture, window: ReadableWindow) -> KeptWindow:
    outcome, identity = capture.info.outcome, capture.info.identity
    used_ns = next(round(metric.value) for metric in outcome.metrics if metric.name == window.cpu_metric)
    return KeptWindow(
        key=key,
        number=identity.round,
        instance=identity.instance,
        outcome=outcome,
        samples=len(capture.samples),
        lost_samples=capture.quality.lost_samples,
        gap_ns=window.gap_ns,
        perf_ns=used_ns,
        advice=window.loss_advice,
    )
