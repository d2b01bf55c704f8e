"""Jobs: what the aggregator asks of an agent, and what the agent reports about it.

An order never holds a command: it names a target or a workload, and a variant, of the agent's own agent.toml.
"""

from __future__ import annotations

from enum import StrEnum

from profiler.model.quick_dataclass import dataclass


class JobKind(StrEnum):
    """ATTACH: profile a running target for windows of time.  RUN: run a workload.  SWAP: make a target another variant, by the
    agent's own command for it."""

    ATTACH = "attach"
    RUN = "run"
    SWAP = "swap"


@dataclass(frozen=True, slots=True)
class OrderedMetric:
    """ATTACH: ``spec`` is a series of the target's page, as in ``attach --metric``.  RUN: "regex:..." or "json:..." over the
    program's output, as in ``record --metric``.  ``pick``: "mean", "median", "last" or "sum" of several matches."""

    name: str
    spec: str
    pick: str = "mean"


@dataclass(frozen=True, slots=True)
class JobOrder:
    """``id``: the aggregator's, not to be guessed.  ``name``: of the target or workload.  ``variant``: the arm's name; of RUN
    and SWAP one of those offered.  ``session``, ``instance``, ``round``: where the captures will belong.  ``start_at_ns``: the
    moment to begin, by the aggregator's clock (ns since 1970), 0 = at once; an agent that cannot begin then fails the job.

    ATTACH: ``windows`` windows of ``window_s`` one after the other.  RUN: ``runs`` runs, each under perf when ``is_profiled``.
    ``event``, ``frequency_hz``, ``call_graph``, ``phase``: as the options of ``attach`` and ``record``; ATTACH with
    ``is_profiled`` False reads only CPU time and metrics."""

    id: str
    kind: JobKind
    name: str
    variant: str
    session: str
    instance: str
    round: int
    start_at_ns: int = 0
    window_s: float = 0.0
    windows: int = 1
    runs: int = 1
    is_profiled: bool = True
    event: str = "auto"
    frequency_hz: int = 0
    call_graph: str = "auto"
    phase: str = ""
    metrics: tuple[OrderedMetric, ...] = ()


class JobState(StrEnum):
    """In the order in which a job goes through them; the last five are final.  WAITING: the agent has not taken it.  READY:
    attached, waits for the moment.  REFUSED: the agent may or will not.  LOST: the agent fell silent (the aggregator's
    judgement)."""

    WAITING = "waiting"
    ACCEPTED = "accepted"
    READY = "ready"
    RUNNING = "running"
    DONE = "done"
    REFUSED = "refused"
    FAILED = "failed"
    LOST = "lost"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        return self in (JobState.DONE, JobState.REFUSED, JobState.FAILED, JobState.LOST, JobState.CANCELLED)


@dataclass(frozen=True, slots=True)
class JobReport:
    """``detail``: one line: why not, or how far.  ``begun_at_ns``: when it began, by the aggregator's clock, 0 = not yet.
    ``captures``: SHA-256 of every capture that the job made, known with the final report; they are uploaded on their own."""

    state: JobState
    detail: str = ""
    begun_at_ns: int = 0
    captures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JobList:
    """What an agent that asks for jobs is answered: every job of its that is not final, in the order to be done, and the IDs of
    those that it runs but are to be ended."""

    orders: tuple[JobOrder, ...] = ()
    cancelled: tuple[str, ...] = ()
