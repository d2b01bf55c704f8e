"""The catalog's interface: which sessions and runs there are.  ``sqlite_catalog`` is the default behind it."""

from __future__ import annotations

from typing import Protocol

from profiler.model.run import RunKey
from profiler.store.records import RunSummary, SessionState, StoredRun, StoredSession


class Catalog(Protocol):
    """Every method is one transaction; several processes may use one catalog.  All raise ``StoreError``."""

    def add_session(self, session: StoredSession) -> bool:
        """False when the name is taken."""

    def finish_round(self, session: str, round_number: int) -> None:
        """All runs of this round, and of those before it, have been added."""

    def finish_session(self, name: str, state: SessionState, finished_at: str) -> None: ...

    def add_run(self, session: str, summary: RunSummary, blob: str, size_bytes: int, origin: str = "") -> StoredRun:
        """Numbers the run; the capture must be in the blob store before.  When there is a run of this ``origin`` (not ""),
        nothing is added, and that run comes back."""

    def replace_run(self, key: RunKey, summary: RunSummary, blob: str, size_bytes: int) -> None:
        """The run has this summary and capture now; nothing happens when there is none."""

    def run_of(self, origin: str) -> StoredRun | None:
        """The run of an ``origin`` that is not empty."""

    def sessions(self) -> tuple[StoredSession, ...]:
        """Oldest first."""

    def runs(self, session: str = "", variant: str = "") -> tuple[StoredRun, ...]:
        """By session, then number; empty arguments admit everything."""

    def next_number(self, session: str) -> int:
        """What the next run of the session will be numbered if nobody else adds one before."""

    def remove_runs(self, keys: tuple[RunKey, ...]) -> None: ...

    def remove_session(self, name: str) -> None:
        """The session and all of its runs."""

    def remove_ended_session(self, name: str) -> bool:
        """As ``remove_session``, unless it is being recorded or gone: then False, and nothing happens."""
