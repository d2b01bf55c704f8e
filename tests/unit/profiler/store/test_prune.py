"""Which sessions a rule lets go, and the command that removes them."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from profiler.cli.main import main
from profiler.store.prune import RetentionRule, ended_sessions
from profiler.store.records import SessionStart, SessionState, StoredSession
from profiler.store.store import open_store
from support.sample_captures import plain_capture, run_info

NOW = datetime(2026, 6, 30, tzinfo=UTC)


def session(name: str, days_ago: float, state: SessionState = SessionState.FINISHED) -> StoredSession:
    """It took an hour."""
    ended = NOW - timedelta(days=days_ago)
    start = SessionStart((ended - timedelta(hours=1)).isoformat(), "h", (), 1, has_rounds=True)
    return StoredSession(name, start, state, "" if state is SessionState.RECORDING else ended.isoformat())


SESSIONS = (
    session("a", 90),
    session("b", 60, SessionState.RECORDING),
    session("c", 40, SessionState.INTERRUPTED),
    session("d", 20),
    session("e", 1),
    session("f", 0, SessionState.RECORDING),
)


@pytest.mark.parametrize(
    ("older_than_days", "keep", "gone"),
    [
        (None, None, ""),
        (30, None, "ac"),
        (19.9, None, "acd"),
        (20.1, None, "ac"),
        (0, None, "acde"),
        (None, 2, "acd"),
        (None, 0, "acde"),
        (None, 99, ""),
        (30, 5, "a"),
        (30, 1, "ac"),
    ],
)
def test_which_sessions_go(older_than_days: float | None, keep: int | None, gone: str) -> None:
    older_than_s = None if older_than_days is None else older_than_days * 86_400
    assert "".join(ended_sessions(SESSIONS, RetentionRule(older_than_s, keep), NOW.timestamp())) == gone


def filled(directory: Path) -> list[str]:
    """Two ended sessions and one that is being recorded."""
    store, names = open_store(directory, create=True), []
    for day in (1, 2, 3):
        names.append(store.begin_session(SessionStart(f"2026-03-0{day}T10:00:00+00:00", "h", ("b",), 1, has_rounds=True)))
        store.add(plain_capture(run_info(names[-1], "a")))
        if day < 3:
            store.finish_session(names[-1])
    return names


def pruned(capsys: pytest.CaptureFixture[str], directory: Path, *options: str) -> str:
    assert main(["--store", str(directory), "prune", *options]) == 0
    return capsys.readouterr().out


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second, third = filled(tmp_path)
    stray = tmp_path / "captures" / third / "0009-a-plain.capture"
    stray.write_bytes(b"x")
    os.utime(stray, (1, 1))
    assert pruned(capsys, tmp_path, "--older-than", "30d") == "removed 1 stray file\n"  # both ended just now
    assert not stray.exists()
    would = pruned(capsys, tmp_path, "--keep-sessions", "2", "--dry-run")
    assert would == f"would remove {first}\n"
    assert len(open_store(tmp_path, create=False).sessions()) == 3
    assert pruned(capsys, tmp_path, "--keep-sessions", "0") == f"removed {first}\nremoved {second}\n"
    assert pruned(capsys, tmp_path, "--keep-sessions", "0") == ""
    store = open_store(tmp_path, create=False)
    assert [run.key.session for run in store.runs()] == [third]
    assert [path.name for path in (tmp_path / "captures").iterdir()] == [third]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--older-than", "30"], "'30' is not an age such as 12h, 30d or 8w"),
        (["--older-than", "-1d"], "expected one argument"),
        (["--keep-sessions", "-1"], "'-1' is not a number of sessions"),
    ],
)
def test_wrong_options(tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str) -> None:
    assert main(["--store", str(tmp_path), "prune", *options]) == 2
    assert message in capsys.readouterr().err


def test_no_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--store", str(tmp_path / "nowhere"), "prune"]) == 1
    assert "no store there" in capsys.readouterr().err
