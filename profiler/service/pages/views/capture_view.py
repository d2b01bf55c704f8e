"""What is shown of the captures in the store: arms of sessions, and the runs of one session."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from profiler.model.quick_dataclass import dataclass
from profiler.model.run import RunMode
from profiler.store.records import StoredRun, StoredSession
from reports.experiment_tables import bytes_text
from reports.plain_text import printable
from reports.quantities import count, counted, percent, scale_for


@dataclass(frozen=True, slots=True)
class ArmRow:
    """One variant of one session.  ``hosts``: as shown, so that one can be chosen.
    ``quality``: what is wrong with its runs, in words, "" = nothing that the catalog knows."""

    session: str
    variant: str
    started_at: str
    state: str
    plain: int
    profiled: int
    failed: int
    samples: int
    event: str
    hosts: tuple[str, ...]
    build_id: str
    command: str
    quality: str

    @property
    def selector(self) -> str:
        return f"{self.session}/{self.variant}"


@dataclass(frozen=True, slots=True)
class CaptureFilter:
    """An empty text admits everything.  ``state``: of the session, as shown."""

    variant: str = ""
    host: str = ""
    state: str = ""

    def admits(self, row: ArmRow) -> bool:
        is_host = not self.host or self.host in row.hosts
        return is_host and self.variant in ("", row.variant) and self.state in ("", row.state)


@dataclass(frozen=True, slots=True)
class RunRow:
    """``number``: within the session.  ``remark``: why the run is left out, "" = it counts."""

    number: int
    round: int
    variant: str
    host: str
    mode: str
    wall: str
    cpu: str
    samples: str
    lost: str
    size: str
    remark: str


def arm_rows(sessions: Sequence[StoredSession], runs: Sequence[StoredRun]) -> tuple[ArmRow, ...]:
    """The latest session first, its variants by name."""
    by_arm: dict[tuple[str, str], list[StoredRun]] = {}
    for run in runs:
        by_arm.setdefault((run.key.session, run.summary.variant), []).append(run)
    variants: dict[str, list[str]] = {}
    for session, variant in sorted(by_arm):
        variants.setdefault(session, []).append(variant)
    return tuple(
        _arm_row(session, variant, by_arm[session.name, variant])
        for session in reversed(sessions)
        for variant in variants.get(session.name, ())
    )


def run_rows(runs: Sequence[StoredRun]) -> tuple[RunRow, ...]:
    """In the order in which they were added."""
    wall = scale_for([run.summary.wall_ns for run in runs], "ns")
    cpu = scale_for([run.summary.user_ns + run.summary.system_ns for run in runs], "ns")
    return tuple(
        RunRow(
            number=run.key.number,
            round=run.summary.round,
            variant=run.summary.variant,
            host=run.summary.hostname,
            mode=str(run.summary.mode),
            wall=wall.quantity(run.summary.wall_ns),
            cpu=cpu.quantity(run.summary.user_ns + run.summary.system_ns),
            samples=count(run.summary.samples),
            lost=count(run.summary.lost_samples),
            size=bytes_text(run.size_bytes),
            remark=_remark(run),
        )
        for run in runs
    )


def state_words(session: StoredSession) -> str:
    """As `slotscope list` says it: a session that never ended has no word from its recorder."""
    return "unfinished" if session.state == "recording" else str(session.state)


def _arm_row(session: StoredSession, variant: str, runs: Sequence[StoredRun]) -> ArmRow:
    valid = [run.summary for run in runs if not run.summary.failure]
    newest = (valid or [run.summary for run in runs])[-1]
    plain = sum(summary.mode is RunMode.PLAIN for summary in valid)
    return ArmRow(
        session=session.name,
        variant=variant,
        started_at=session.start.started_at,
        state=state_words(session),
        plain=plain,
        profiled=len(valid) - plain,
        failed=len(runs) - len(valid),
        samples=sum(summary.samples for summary in valid),
        event=", ".join(sorted({summary.event for summary in valid if summary.event})),
        hosts=tuple(sorted({printable(run.summary.hostname) for run in runs if run.summary.hostname})),
        build_id=newest.build_id,
        command=shlex.join(newest.command or session.start.command),
        quality=_quality(runs),
    )


def _quality(runs: Sequence[StoredRun]) -> str:
    failed = sum(bool(run.summary.failure) for run in runs)
    cut = sum(not run.round_complete for run in runs)
    lost = sum(run.summary.lost_samples for run in runs)
    samples = sum(run.summary.samples for run in runs)
    parts = [f"{counted(failed, 'run')} left out"] if failed else []
    parts += [f"{counted(cut, 'run')} of a round that was cut short"] if cut else []
    parts += [f"{percent(lost / (lost + samples))} of the samples lost"] if lost else []
    return ", ".join(parts)


def _remark(run: StoredRun) -> str:
    if run.summary.failure:
        return f"left out: {run.summary.failure}"
    return "" if run.round_complete else "its round was cut short"
