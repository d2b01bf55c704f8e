"""The captures of an experiment's session: which have come, and which are left out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol

from profiler.model.capture import empty_capture
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import CaptureInfo, HostFacts, RunIdentity, RunOutcome
from profiler.store.records import SessionState, StoredRun
from profiler.store.store import Store


@dataclass(frozen=True, slots=True)
class MissedWindow:
    """A window of which there is no capture.  ``failure``: why; ``at_ns``: when it was to begin, ns since 1970."""

    identity: RunIdentity
    host: HostFacts
    failure: str
    at_ns: int


class CaptureShelf(Protocol):
    """Everything may be done again, and is then done once.  All raise ``StoreError``."""

    def arrived(self, session: str, captures: Sequence[str]) -> Mapping[str, str]:
        """Of these captures, by SHA-256, those that are in the session or were refused, and why one does not count, "" = it
        does.  An agent may report what it likes: captures of other sessions are not there."""

    def unmarked(self, session: str) -> tuple[str, ...]:
        """The session's captures that were not left out."""

    def leave_out(self, session: str, capture: str, failure: str) -> bool:
        """The capture stays, and counts as failed; one that failed already keeps its reason.  False when the session does not
        have it."""

    def add_missed(self, window: MissedWindow, key: str) -> None:
        """``key``: by which it is known again."""

    def finish_round(self, session: str, round_number: int) -> None: ...

    def finish_session(self, session: str, state: SessionState) -> None: ...


@dataclass(frozen=True, slots=True)
class StoreShelf:
    """In the aggregator's store.  ``refusal_of``: of a capture, why it was refused when it came, "" = it was not."""

    store: Store
    refusal_of: Callable[[str], str]

    def arrived(self, session: str, captures: Sequence[str]) -> Mapping[str, str]:
        found = {}
        for capture in captures:
            run = self._run_of(session, capture)
            if run is not None:
                found[capture] = run.summary.failure
            elif refusal := self.refusal_of(capture):
                found[capture] = f"its capture was refused: {refusal}"
        return found

    def unmarked(self, session: str) -> tuple[str, ...]:
        return tuple(run.origin for run in self.store.runs(session) if not run.summary.failure)

    def leave_out(self, session: str, capture: str, failure: str) -> bool:
        run = self._run_of(session, capture)
        if run is not None:
            self.store.leave_out(run, failure)
        return run is not None

    def _run_of(self, session: str, capture: str) -> StoredRun | None:
        run = self.store.catalog.run_of(capture)
        return run if run is not None and run.key.session == session else None

    def add_missed(self, window: MissedWindow, key: str) -> None:
        started_at = datetime.fromtimestamp(window.at_ns / 1e9, UTC).isoformat(timespec="milliseconds")
        outcome = RunOutcome(failure=window.failure)
        info = CaptureInfo(window.identity, host=window.host, outcome=outcome, started_at=started_at)
        self.store.add(empty_capture(info), origin=hashlib.sha256(key.encode()).hexdigest())

    def finish_round(self, session: str, round_number: int) -> None:
        self.store.finish_round(session, round_number)

    def finish_session(self, session: str, state: SessionState) -> None:
        self.store.finish_session(session, state)
