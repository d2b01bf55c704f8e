"""What the catalog knows of sessions and runs: enough to list and select without opening a capture."""

from __future__ import annotations

import re
from enum import StrEnum

from profiler.errors import UsageError
from profiler.model.capture import Capture
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import RunKey, RunMode

_VARIANT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+@,-]*")
_RESERVED = frozenset({"last"})


class SessionState(StrEnum):
    """RECORDING: being recorded, or its recorder was killed.  INTERRUPTED: ended early, by Ctrl-C or by a failure."""

    RECORDING = "recording"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class SessionStart:
    """What is known when a session begins.  ``started_at``: ISO 8601 UTC with seconds.  ``has_rounds``: whether runs belong to
    rounds that can be cut short; imported files do not."""

    started_at: str
    hostname: str
    command: tuple[str, ...]
    seed: int
    has_rounds: bool


@dataclass(frozen=True, slots=True)
class StoredSession:
    """``finished_at`` is empty while ``state`` is RECORDING; rounds below ``finished_rounds`` are whole."""

    name: str
    start: SessionStart
    state: SessionState
    finished_at: str = ""
    finished_rounds: int = 0


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The part of ``CaptureInfo`` and the counts that the catalog keeps; fields as documented there.  ``variant``: the arm's
    label, with the condition behind an @.  ``build_id``: hex, of the program."""

    variant: str
    mode: RunMode
    round: int
    position: int
    started_at: str
    hostname: str
    command: tuple[str, ...]
    program: str
    build_id: str
    event: str
    frequency_hz: int
    period: int
    call_graph: str
    wall_ns: int
    user_ns: int
    system_ns: int
    failure: str
    samples: int
    lost_samples: int


@dataclass(frozen=True, slots=True)
class StoredRun:
    """``blob``: key of the capture in the blob store.  ``round_complete``: False when the round of this run was cut short.
    ``origin``: SHA-256 (hex) of the bytes that an agent uploaded, "" of a run that was recorded here; no two runs have one."""

    key: RunKey
    summary: RunSummary
    blob: str
    size_bytes: int
    round_complete: bool
    origin: str = ""


def summarize(capture: Capture) -> RunSummary:
    """The catalog's row for a capture."""
    info, event = capture.info, capture.events[0] if capture.events else None
    return RunSummary(
        variant=info.identity.arm,
        mode=info.identity.mode,
        round=info.identity.round,
        position=info.identity.position,
        started_at=info.started_at,
        hostname=info.host.hostname,
        command=info.command,
        program=info.program.path,
        build_id=info.program.build_id,
        event=event.name if event else info.perf.event,
        frequency_hz=event.frequency_hz if event else info.perf.frequency_hz,
        period=event.period if event else info.perf.period,
        call_graph=info.perf.call_graph,
        wall_ns=info.outcome.wall_ns,
        user_ns=info.outcome.user_ns,
        system_ns=info.outcome.system_ns,
        failure=info.outcome.failure,
        samples=len(capture.samples),
        lost_samples=capture.quality.lost_samples,
    )


def check_variant_name(name: str) -> None:
    """``UsageError`` unless the name can stand in a selector and in a file name."""
    if name in _RESERVED or not _VARIANT.fullmatch(name):
        raise UsageError(
            f"variant name {name!r}: use letters, digits and _ . + @ , - (not first: . + @ , -), and not the word 'last'"
        )
