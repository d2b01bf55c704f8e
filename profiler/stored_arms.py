"""From selections in a store to arms that can be analysed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from profiler.errors import UsageError
from profiler.model.run import RunMode
from reports.quantities import counted

if TYPE_CHECKING:
    from profiler.model.capture import Capture
    from profiler.pipeline import Arm
    from profiler.store.selectors import Selection
    from profiler.store.store import Store


def load_stored_arms(
    selections: Sequence[Selection], selectors: Sequence[str], store: Store, needs_profile: bool = True
) -> tuple[Arm, ...]:
    """One arm per selection, in order, under distinct names; ``selectors``: what each was asked for with.

    ``UsageError`` for an arm of failed runs only and, with ``needs_profile``, for one without profiled runs.
    """
    from profiler.pipeline import Arm

    arms = []
    for name, selection in zip(distinct_names([found.label for found in selections], selectors), selections, strict=True):
        captures = load_runs(selection, store, lambda line: None)
        check_runs(name, captures, needs_profile)
        arms.append(Arm(name, captures))
    return tuple(arms)


def load_runs(selection: Selection, store: Store, progress: Callable[[str], None]) -> tuple[Capture, ...]:
    """The captures of the selection's runs, in their order."""
    loaded = []
    for place, run in enumerate(selection.runs, 1):
        progress(f"{selection.label}: loading run {place} of {len(selection.runs)}")
        loaded.append(store.load(run))
    return tuple(loaded)


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


def check_runs(name: str, captures: Sequence[Capture], needs_profile: bool) -> None:
    """``UsageError`` when nothing of the arm can be used."""
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
