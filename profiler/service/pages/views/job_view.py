"""What is shown of jobs: which there are, how far each is, and how many are in each state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from profiler.model.quick_dataclass import dataclass
from profiler.protocol.job import JobKind, JobOrder, JobState
from profiler.service.jobs.job_board import StoredJob
from profiler.service.pages.views.times import moment


@dataclass(frozen=True, slots=True)
class JobRow:
    """``what``: the order in words.  ``round``: from 1.  Moments in words, "" = not yet."""

    id: str
    agent: str
    session: str
    state: JobState
    what: str
    round: int
    detail: str
    ordered: str
    begun: str
    reported: str
    captures: int

    @property
    def can_be_cancelled(self) -> bool:
        return not self.state.is_final


@dataclass(frozen=True, slots=True)
class JobFilter:
    """An empty text admits everything."""

    agent: str = ""
    session: str = ""
    state: str = ""


def job_rows(jobs: Sequence[StoredJob], chosen: JobFilter) -> tuple[JobRow, ...]:
    """The latest order first."""
    return tuple(_row(job) for job in reversed(jobs) if _passes(job, chosen))


def state_counts(jobs: Sequence[StoredJob]) -> tuple[tuple[JobState, int], ...]:
    """Of all states that a job is in, in the order in which jobs go through them."""
    counts = Counter(job.report.state for job in jobs)
    return tuple((state, counts[state]) for state in JobState if counts[state])


def order_words(order: JobOrder) -> str:
    """ "attach to node (fat): 3 windows of 10 s"."""
    if order.kind is JobKind.SWAP:
        return f"swap {order.name} to {order.variant}"
    plain = "" if order.is_profiled else ", without a profile"
    if order.kind is JobKind.ATTACH:
        windows = f"{order.windows} {'window' if order.windows == 1 else 'windows'} of {order.window_s:g} s"
        return f"attach to {order.name} ({order.variant}): {windows}{plain}"
    return f"run {order.name} ({order.variant}): {order.runs} {'run' if order.runs == 1 else 'runs'}{plain}"


def _passes(job: StoredJob, chosen: JobFilter) -> bool:
    pairs = ((chosen.agent, job.agent), (chosen.session, job.order.session), (chosen.state, job.report.state.value))
    return all(wanted in ("", found) for wanted, found in pairs)


def _row(job: StoredJob) -> JobRow:
    return JobRow(
        id=job.order.id,
        agent=job.agent,
        session=job.order.session,
        state=job.report.state,
        what=order_words(job.order),
        round=job.order.round + 1,
        detail=job.report.detail,
        ordered=moment(job.ordered_ns),
        begun=moment(job.report.begun_at_ns),
        reported=moment(job.reported_ns),
        captures=len(job.report.captures),
    )
