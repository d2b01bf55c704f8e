"""One store, several processes: concurrent writers, and writers killed at any moment."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from profiler.store.records import SessionState
from profiler.store.store import open_store
from support.sample_captures import run_info, same, two_stack_capture

WRITER = """
import sys
from pathlib import Path
from support.sample_captures import run_info, two_stack_capture
from profiler.store.records import SessionStart
from profiler.store.store import open_store

store = open_store(Path(sys.argv[1]), create=True)
name, rounds = sys.argv[2], int(sys.argv[3])
session = store.begin_session(SessionStart("2026-03-01T10:00:00+00:00", name, (name,), 1, has_rounds=True))
print(session, flush=True)
for number in range(rounds):
    for position in range(2):
        store.add(two_stack_capture(run_info(session, name, number, position=2 * number + position), repeat=2000))
    store.finish_round(session, number)
store.finish_session(session)
"""
TESTS = Path(__file__).resolve().parent.parent


def start_writer(store: Path, name: str, rounds: int) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS.parent), str(TESTS)])}
    command = [sys.executable, "-c", WRITER, str(store), name, str(rounds)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_two_processes_write_at_the_same_time(tmp_path: Path) -> None:
    rounds = 15
    writers = {name: start_writer(tmp_path, name, rounds) for name in ("a", "b")}
    sessions = {}
    for name, writer in writers.items():
        out, err = writer.communicate(timeout=60)
        assert (writer.returncode, err) == (0, "")
        sessions[name] = out.strip()
    store = open_store(tmp_path, create=False)
    assert {session.name for session in store.sessions()} == set(sessions.values())
    for name, session in sessions.items():
        runs = store.runs(session)
        assert [run.key.number for run in runs] == list(range(2 * rounds))
        assert all(run.round_complete and run.summary.variant == name for run in runs)
        last = two_stack_capture(run_info(session, name, rounds - 1, position=2 * rounds - 1), repeat=2000)
        assert same(store.load(runs[-1]), last)
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize("seed", range(6))
def test_killed_writer_leaves_whole_runs_only(tmp_path: Path, seed: int) -> None:
    with start_writer(tmp_path, "a", 400) as writer:
        assert writer.stdout is not None
        session = writer.stdout.readline().strip()
        time.sleep(random.Random(seed).uniform(0.0, 0.25))
        writer.send_signal(signal.SIGKILL)
        assert writer.wait() == -signal.SIGKILL
    store = open_store(tmp_path, create=False)
    (stored,) = store.sessions()
    assert (stored.name, stored.state) == (session, SessionState.RECORDING)
    runs = store.runs(session)
    assert [run.key.number for run in runs] == list(range(len(runs)))
    assert [store.load(run).info.identity.position for run in runs] == list(range(len(runs)))
    assert [run.round_complete for run in runs] == [run.summary.round < stored.finished_rounds for run in runs]
    # A run's row may be there without the round's end, never the other way round.
    assert 0 <= len(runs) - 2 * stored.finished_rounds <= 2
    captures = list((tmp_path / "captures" / session).glob("*.capture")) if runs else []
    assert len(captures) - len(runs) in (0, 1)
    store.add(two_stack_capture(run_info(session, "a", 900)))
    assert len(store.runs(session)) == len(runs) + 1
