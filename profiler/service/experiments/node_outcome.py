"""What one node made of its part of a turn; pure."""

from __future__ import annotations

from collections.abc import Mapping

from profiler.model.quick_dataclass import dataclass
from profiler.protocol.job import JobReport, JobState
from profiler.service.jobs.job_board import StoredJob

_NS = 1_000_000_000
_NOT_TAKEN = "the job was not taken in time"


@dataclass(frozen=True, slots=True)
class Sight:
    """What is known at a moment.  ``absent``: agents that cannot be asked for anything now, and why; ``heard_ns``: when each
    was heard last.  ``jobs``: those of the
    session by ID.  ``captures``: SHA-256 of those that have arrived, and why one does not count, "" = it does.
    ``clock_errors_ns``: by agent, by how much its clock may be wrong."""

    now_ns: int
    absent: Mapping[str, str]
    heard_ns: Mapping[str, int]
    jobs: Mapping[str, StoredJob]
    captures: Mapping[str, str]
    clock_errors_ns: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class NodeOutcome:
    """``is_over``: nothing more is to be waited for.  ``problem``: "" = none."""

    is_over: bool
    problem: str = ""


def swap_outcome(job: StoredJob | None, now_ns: int, until_ns: int) -> NodeOutcome:
    """Of a swap that must be done by ``until_ns``."""
    if job is not None and job.report.state is JobState.DONE:
        return NodeOutcome(True)
    if job is not None and job.report.state.is_final:
        return NodeOutcome(True, f"not swapped: {_ended(job.report)}")
    return NodeOutcome(True, "not swapped: it took too long") if now_ns > until_ns else NodeOutcome(False)


def measured_outcome(job: StoredJob | None, now_ns: int, until_ns: int, largest_skew_ns: int) -> NodeOutcome:
    """Of a window or run that was to begin at the order's instant and must be reported by ``until_ns``."""
    if job is None:
        return NodeOutcome(True, _NOT_TAKEN)
    report = job.report
    if report.state is JobState.WAITING and now_ns > job.order.start_at_ns:
        return NodeOutcome(True, _NOT_TAKEN)
    if not report.state.is_final:
        return NodeOutcome(True, "no end of the job was reported in time") if now_ns > until_ns else NodeOutcome(False)
    if report.state is not JobState.DONE:
        return NodeOutcome(True, _ended(report))
    return NodeOutcome(True, _beginning_problem(job, largest_skew_ns) or ("" if report.captures else "it made no capture"))


def arrival(job: StoredJob | None, captures: Mapping[str, str], now_ns: int, until_ns: int) -> NodeOutcome:
    """Of the captures of a job that is done, which must be in by ``until_ns``."""
    if job is None:
        return NodeOutcome(True, _NOT_TAKEN)
    if all(capture in captures for capture in job.report.captures):
        return NodeOutcome(True, next((why for why in map(captures.__getitem__, job.report.captures) if why), ""))
    return NodeOutcome(True, "its capture did not arrive in time") if now_ns > until_ns else NodeOutcome(False)


def _ended(report: JobReport) -> str:
    return f"{report.state}: {report.detail}" if report.detail else report.state.value


def _beginning_problem(job: StoredJob, largest_skew_ns: int) -> str:
    begun_ns, start_ns = job.report.begun_at_ns, job.order.start_at_ns
    if not begun_ns:
        return "it did not say when it began"
    skew_ns = begun_ns - start_ns
    if abs(skew_ns) <= largest_skew_ns:
        return ""
    when = "late" if skew_ns > 0 else "early"
    return f"began {abs(skew_ns) / 1e6:.0f} ms too {when}, at most {largest_skew_ns / 1e6:.0f} ms are allowed"


def seconds_ns(seconds: float) -> int:
    return round(seconds * _NS)
