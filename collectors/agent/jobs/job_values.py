"""What an agent tells the process of a job (one JSON document), and what that tells the agent (a line of JSON per event)."""

from __future__ import annotations

from enum import StrEnum

from collectors.agent.config.agent_config import ConfiguredTarget, ConfiguredWorkload
from profiler.model.quick_dataclass import dataclass
from profiler.protocol.job import JobOrder


@dataclass(frozen=True, slots=True)
class JobTask:
    """An order that was checked, with what the agent's file has under its names.  ``store``: directory of the spool's store.
    ``begin_at_ns``: CLOCK_MONOTONIC, 0 = at once.  ``longest_s``: of one run or of the swap's command."""

    order: JobOrder
    store: str
    begin_at_ns: int
    longest_s: float
    target: ConfiguredTarget | None = None
    workload: ConfiguredWorkload | None = None


class JobEventKind(StrEnum):
    """READY: all is attached.  BEGUN: ``monotonic_ns`` says when.  PROGRESS: ``detail`` says how far.  DONE, FAILED: the last
    event, ``detail`` says what came of it."""

    READY = "ready"
    BEGUN = "begun"
    PROGRESS = "progress"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class JobEvent:
    kind: JobEventKind
    detail: str = ""
    monotonic_ns: int = 0
