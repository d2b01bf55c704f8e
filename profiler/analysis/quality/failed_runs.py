"""Runs that failed, in words: those that were made again, and those that nothing took the place of."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.model.costs import ArmCosts
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import CaptureInfo


@dataclass(frozen=True, slots=True)
class FailedRuns:
    """Lines in the order of execution.  Windows or runs of one process or node with one reason share a line, and so do the
    nodes whose round was made again for one of them."""

    repeated: tuple[str, ...]
    left_out: tuple[str, ...]


def failed_runs(arms: Sequence[ArmCosts]) -> FailedRuns:
    """Of all arms of an experiment."""
    failed = [(arm, info) for arm in arms for info in arm.failed]
    failed.sort(key=lambda entry: entry[1].identity.position)
    good = {(arm.name, _place(info)) for arm in arms for info in (*arm.infos, *arm.plain)}
    repeated = dict.fromkeys(_line(arm, info) for arm, info in failed if (arm.name, _place(info)) in good)
    others = [(arm, info) for arm, info in failed if (arm.name, _place(info)) not in good]
    windows: dict[tuple[str, str, str], int] = {}
    lines = []
    for arm, info in others:
        if not info.identity.instance:
            lines.append(_line(arm, info))
            continue
        what = "window" if info.identity.is_window else "run"
        key = (f"{arm.name}, {info.identity.instance}", info.outcome.failure, what)
        windows[key] = windows.get(key, 0) + 1
    for (node, failure, what), count in windows.items():
        lines.append(f"{node}, {count} {what}{'' if count == 1 else 's'}: {failure}")
    return FailedRuns(tuple(repeated), tuple(lines))


def _place(info: CaptureInfo) -> tuple[int, str, str]:
    return info.identity.round, info.identity.mode, info.identity.instance


def _line(arm: ArmCosts, info: CaptureInfo) -> str:
    return f"{arm.name}, round {info.identity.round + 1}, {info.identity.mode}: {info.outcome.failure}"
