"""Findings about the files that names were taken from: those that nothing verified, and those that lack a part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from profiler.analysis.quality.findings import WARN, Finding, percent
from profiler.analysis.quality.run_quality import RunQuality

LEAST_SHARE = 0.001


def file_findings(runs: Sequence[RunQuality], weight: int) -> list[Finding]:
    """One finding per file and kind, heaviest first; ``weight``: of all runs.  Files below ``LEAST_SHARE`` do not matter."""
    entries = [entry for run in runs for entry in run.doubtful]
    newer = {entry.caveats.unverified for entry in entries if entry.is_newer}
    # perf keeps the build IDs of files that a sample fell into, not of those that only call: their few names are right
    # unless the file was replaced.
    unverified = _shares(
        ((path, entry.weight if path in newer else entry.own) for entry in entries for path in (entry.caveats.unverified,)),
        weight,
    )
    incomplete = _shares(((entry.caveats.incomplete, entry.weight) for entry in entries), weight)
    found = [_unverified(path, share, path in newer) for path, share in unverified]
    return found + [_incomplete(what, share) for what, share in incomplete]


def _shares(weights: Iterable[tuple[str, int]], total: int) -> list[tuple[str, float]]:
    sums: dict[str, int] = {}
    for name, weight in weights:
        if name:
            sums[name] = sums.get(name, 0) + weight
    heavy = {name: weight / total for name, weight in sums.items() if weight and weight >= LEAST_SHARE * total}
    return sorted(heavy.items(), key=lambda item: (-item[1], item[0]))


def _unverified(path: str, share: float, is_newer: bool) -> Finding:
    message = f"build ID not recorded: names of {path} are not verified ({percent(share)} of the weight)"
    if is_newer:
        message += "; the file was changed after the recording, so they may be those of another build"
    advice = "link with -Wl,--build-id, and let perf keep build IDs; or record again"
    return Finding(WARN, "unverified-names", message, advice)


def _incomplete(what: str, share: float) -> Finding:
    message = f"{what}: inlined calls may be missing or nameless ({percent(share)} of the weight)"
    advice = "build without -gsplit-dwarf, or use debug files that dwz did not share parts of"
    return Finding(WARN, "incomplete-debug-info", message, advice)
