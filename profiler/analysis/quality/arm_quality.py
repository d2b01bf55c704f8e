"""The quality verdict of an arm, by stated thresholds, and the warnings that come with advice."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from profiler.analysis.quality.file_findings import file_findings
from profiler.analysis.quality.findings import FAILED, OK, WARN, Finding, percent
from profiler.analysis.quality.run_quality import RunQuality
from profiler.analysis.quality.truncation_advice import truncation_advice
from profiler.model.costs import ArmQuality, MissingSymbols
from profiler.model.quality import CaptureQuality, ReportWarning
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import PerfSettings
from profiler.model.sample_table import StackState

WARN_TRUNCATED, FAIL_TRUNCATED = 0.02, 0.20
WARN_ROOTLESS, FAIL_ROOTLESS = 0.05, 0.50
WARN_UNRESOLVED, FAIL_UNRESOLVED = 0.05, 0.20
WARN_NO_USER_STACK = 0.05
WARN_FOLDED_INTERRUPTS = 0.05
WARN_PARTIAL_NAMES = 0.20
WARN_ONE_SAMPLE = 0.05  # asked only where a sample's fair share is far smaller
FEW_SAMPLES = 100
MISSING_SHARE = 0.001


@dataclass(frozen=True, slots=True)
class QualityVerdict:
    """The verdict and what follows from it; ``missing`` heaviest first, ties by path and build ID."""

    quality: ArmQuality
    missing: tuple[MissingSymbols, ...]
    warnings: tuple[ReportWarning, ...]


def judge(
    runs: Sequence[RunQuality],
    recordings: Sequence[CaptureQuality],
    settings: Collection[PerfSettings] = (),
    more: Sequence[Finding] = (),
) -> QualityVerdict:
    """Judges an arm by its profiled runs (``recordings``: what was counted while ingesting them).  ``settings``: how their
    stacks were recorded.  ``more``: what was found by other means."""
    weight = sum(run.weight for run in runs)
    share = _Shares(weight)
    states = [sum(run.by_state[state] for run in runs) for state in StackState]
    own = sum(run.own for run in runs)
    quality = ArmQuality(
        status=OK,
        samples=sum(run.samples for run in runs),
        lost_samples=sum(recording.lost_samples for recording in recordings),
        complete=share.of(states[StackState.COMPLETE]),
        gap_possible=share.of(states[StackState.GAP_POSSIBLE]),
        rootless=share.of(states[StackState.ROOTLESS]),
        truncated=share.of(states[StackState.TRUNCATED]),
        no_user_stack=share.of(states[StackState.NO_USER_STACK]),
        unresolved=share.of(sum(run.unresolved for run in runs)),
        folded_interrupts=share.of(sum(run.folded for run in runs)),
        own_debug_share=sum(run.own_with_debug for run in runs) / own if own else -1.0,
        partial_names=share.of(sum(run.partial for run in runs)),
    )
    missing = _missing(runs, share)
    findings = [
        *more,
        *_recording_findings(quality, recordings),
        *_stack_findings(quality, settings),
        *_rootless(runs, quality, {perf.call_graph for perf in settings}),
        *_name_findings(quality, missing),
        *file_findings(runs, weight),
        *_weight_findings(runs, quality),
    ]
    if not runs:  # what was not profiled has no stacks that could be bad
        findings = [*more]
    return QualityVerdict(
        quality=replace(quality, status=_worst(finding.severity for finding in findings)),
        missing=missing,
        warnings=tuple(ReportWarning(finding.code, finding.message, finding.advice) for finding in findings),
    )


@dataclass(frozen=True, slots=True)
class _Shares:
    total: int

    def of(self, weight: int) -> float:
        return weight / self.total if self.total else 0.0


def _worst(severities: Iterable[str]) -> str:
    return max(severities, key=(OK, WARN, FAILED).index, default=OK)


def _recording_findings(quality: ArmQuality, recordings: Sequence[CaptureQuality]) -> list[Finding]:
    found = []
    if quality.lost_samples:
        message = f"{quality.lost_samples} samples were lost while recording ({quality.samples} were kept)"
        found.append(Finding(FAILED, "lost-samples", message, "record again at a lower frequency or with smaller stack dumps"))
    throttled = sum(recording.throttled for recording in recordings)
    if throttled:
        message = f"the kernel throttled sampling {throttled} times"
        found.append(Finding(WARN, "throttled", message, "record at a lower frequency"))
    unfinished = sum(recording.is_unfinished for recording in recordings)
    if unfinished:
        message = f"{unfinished} of {len(recordings)} recordings end in the middle; the readable part was used"
        found.append(Finding(WARN, "unfinished", message, "record again and let perf end by itself"))
    return found


def _stack_findings(quality: ArmQuality, settings: Collection[PerfSettings]) -> list[Finding]:
    found = []
    if quality.truncated > WARN_TRUNCATED:
        severity = FAILED if quality.truncated > FAIL_TRUNCATED else WARN
        message = f"{percent(quality.truncated)} of the weight has truncated stacks: callers are missing"
        found.append(Finding(severity, "truncated", message, truncation_advice(settings)))
    if quality.no_user_stack > WARN_NO_USER_STACK:
        message = f"{percent(quality.no_user_stack)} of the weight has no user stack"
        found.append(Finding(WARN, "no-user-stack", message, "record with --call-graph fp or dwarf; kernel threads have none"))
    return found


def _rootless(runs: Sequence[RunQuality], quality: ArmQuality, call_graphs: set[str]) -> list[Finding]:
    if quality.rootless <= WARN_ROOTLESS:
        return []
    advice = "build with frame pointers, or record with --call-graph dwarf"
    if call_graphs == {"dwarf"}:
        weights: dict[str, int] = {}
        for entry in (entry for run in runs for entry in run.rootless_in):
            weights[entry.path] = weights.get(entry.path, 0) + entry.weight
        files = ", ".join(sorted(weights, key=lambda path: (-weights[path], path))[:3])
        advice = (
            f"unwinding ended in {files or 'unknown files'}: files that are not at hand (--debug-dir DIR finds them), or code "
            "without call frame information (build it with -fasynchronous-unwind-tables)"
        )
    message = f"{percent(quality.rootless)} of the weight has stacks that do not reach the start of a thread"
    return [Finding(FAILED if quality.rootless > FAIL_ROOTLESS else WARN, "rootless", message, advice)]


def _name_findings(quality: ArmQuality, missing: Sequence[MissingSymbols]) -> list[Finding]:
    found = []
    if quality.unresolved > WARN_UNRESOLVED:
        severity = FAILED if quality.unresolved > FAIL_UNRESOLVED else WARN
        files = ", ".join(entry.path for entry in missing[:3])
        message = f"{percent(quality.unresolved)} of the weight has no function name" + (
            f" (missing: {files})" if files else ""
        )
        advice = "install the debug packages of these files, or name a directory that holds them: --debug-dir DIR"
        found.append(Finding(severity, "unresolved", message, advice))
    return found


def _weight_findings(runs: Sequence[RunQuality], quality: ArmQuality) -> list[Finding]:
    found = []
    if quality.partial_names > WARN_PARTIAL_NAMES:
        message = f"{percent(quality.partial_names)} of the weight has inline frames without a qualified name"
        found.append(Finding(WARN, "partial-names", message, "build with debug = 1 instead of line-tables-only (gcc: -g)"))
    if quality.folded_interrupts > WARN_FOLDED_INTERRUPTS:
        message = f"{percent(quality.folded_interrupts)} of the weight is interrupts and scheduling, charged to what they hit"
        found.append(Finding(WARN, "interrupts", message, "use a quieter machine, or pin the program with --cpus"))
    if quality.samples < FEW_SAMPLES:
        message = f"only {quality.samples} samples" if quality.samples else "no samples"
        found.append(Finding(WARN, "few-samples", message, "record longer, more runs, or at a higher frequency"))
    giants = [run for run in runs if run.samples >= FEW_SAMPLES and run.heaviest_sample > WARN_ONE_SAMPLE * run.weight]
    if giants:
        worst = max(run.heaviest_sample / run.weight for run in giants)
        message = f"one sample holds {percent(worst)} of a run's weight"
        found.append(
            Finding(WARN, "heavy-sample", message, "its period is implausible; compare sample counts, or record again")
        )
    return found


def _missing(runs: Sequence[RunQuality], share: _Shares) -> tuple[MissingSymbols, ...]:
    weights: dict[tuple[str, str], int] = {}
    reasons: dict[tuple[str, str], str] = {}
    for run in runs:
        for entry in run.unnamed:
            key = entry.path, entry.build_id
            weights[key] = weights.get(key, 0) + entry.weight
            reasons[key] = min(reasons.get(key, entry.reason), entry.reason)
    order = sorted(weights, key=lambda key: (-weights[key], key))
    found = (
        MissingSymbols(path, build_id, share.of(weights[path, build_id]), reasons[path, build_id]) for path, build_id in order
    )
    return tuple(entry for entry in found if entry.share >= MISSING_SHARE)
