"""What is shown of experiments: which there are, and how far each is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from profiler.model.experiment import ExperimentRecord
from profiler.model.quick_dataclass import dataclass
from profiler.protocol.job import JobState
from profiler.service.experiments.course import CourseState
from profiler.service.jobs.job_board import StoredJob
from profiler.service.pages.views.capture_view import state_words
from profiler.store.records import StoredSession


@dataclass(frozen=True, slots=True)
class ExperimentRow:
    session: str
    started_at: str
    state: str
    name: str
    design: str
    variants: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RoundProgress:
    """``round``: from 1.  ``states``: how many of its jobs are in which state; ``troubles``: what was said of those that
    failed."""

    round: int
    states: str
    troubles: tuple[str, ...]


_TROUBLE = (JobState.REFUSED, JobState.FAILED, JobState.LOST)


def experiment_row(session: StoredSession, record: ExperimentRecord, course: CourseState | None = None) -> ExperimentRow:
    """``course``: of an experiment over agents, whose session says only whether it has ended."""
    variants = tuple(variant.name for variant in record.variants)
    state = state_words(session) if course is None else course.value
    return ExperimentRow(session.name, session.start.started_at, state, record.name, str(record.design), variants)


def round_progress(jobs: Sequence[StoredJob]) -> tuple[RoundProgress, ...]:
    """``jobs``: of one session.  The latest round first."""
    rounds: dict[int, list[StoredJob]] = {}
    for job in jobs:
        rounds.setdefault(job.order.round, []).append(job)
    return tuple(_progress(number, rounds[number]) for number in sorted(rounds, reverse=True))


def _progress(number: int, jobs: Sequence[StoredJob]) -> RoundProgress:
    counts = Counter(job.report.state for job in jobs)
    states = ", ".join(f"{counts[state]} {state}" for state in JobState if counts[state])
    troubles = tuple(
        f"{job.agent}: {job.report.state}{f', {job.report.detail}' if job.report.detail else ''}"
        for job in jobs
        if job.report.state in _TROUBLE
    )
    return RoundProgress(number + 1, states, troubles)
