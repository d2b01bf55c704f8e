"""What a store may lose: sessions that are old, and what crashes left behind."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from profiler.model.quick_dataclass import dataclass
from profiler.store.kept_files import remove_unneeded, unneeded_files
from profiler.store.records import SessionState, StoredSession
from profiler.store.scratch import STRAY_AGE_S
from profiler.store.store import Store


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """``older_than_s``: sessions that ended longer ago may go, None = whatever their age.  ``keep_sessions``: the newest ones
    that stay in any case, None = none.  Without either, every session stays."""

    older_than_s: float | None = None
    keep_sessions: int | None = None


@dataclass(frozen=True, slots=True)
class StoreLeftovers:
    """``sessions``: by name, oldest first.  ``strays``: keys of files that no run counts.  ``kept_files``: binaries and debug
    files that no session needs."""

    sessions: tuple[str, ...]
    strays: tuple[str, ...]
    kept_files: tuple[Path, ...] = ()


def find_leftovers(store: Store, rule: RetentionRule, now_s: float) -> StoreLeftovers:
    """``now_s``: s since 1970.  ``StoreError``."""
    return StoreLeftovers(ended_sessions(store.sessions(), rule, now_s), store.strays(now_s - STRAY_AGE_S))


def remove_leftovers(store: Store, found: StoreLeftovers) -> tuple[str, ...]:
    """The sessions that went: one that is being recorded again meanwhile stays.  ``StoreError``."""
    store.remove_strays(found.strays)
    return tuple(session for session in found.sessions if store.remove_ended_session(session))


def remove_unneeded_files(store: Store) -> tuple[Path, ...]:
    """Of a store that is no aggregator's, whose files other rules keep.  ``StoreError``."""
    return remove_unneeded(unneeded_files(store.directory))


def ended_sessions(sessions: Sequence[StoredSession], rule: RetentionRule, now_s: float) -> tuple[str, ...]:
    """Names of those (oldest first) that the rule lets go; never one that is being recorded."""
    if rule.older_than_s is None and rule.keep_sessions is None:
        return ()
    candidates = sessions[: max(0, len(sessions) - (rule.keep_sessions or 0))]
    ended = [session for session in candidates if session.state is not SessionState.RECORDING]
    ended_before_s = math.inf if rule.older_than_s is None else now_s - rule.older_than_s
    return tuple(session.name for session in ended if _ended_s(session) < ended_before_s)


def _ended_s(session: StoredSession) -> float:
    moment = datetime.fromisoformat(session.finished_at or session.start.started_at)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
