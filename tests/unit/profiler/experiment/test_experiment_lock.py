"""One run of an experiment at a time."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from collectors.processes.process_tree import TreeCommand, run_tree
from profiler.errors import UsageError
from profiler.experiment.experiment_lock import experiment_lock


def test_a_second_run_is_refused_and_names_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("profiler.store.file_lock.PATIENCE_S", 0.1)
    with experiment_lock(tmp_path / "x", "x"):
        words = f"experiment 'x' is being run in this store already, by process {os.getpid()}: wait"
        with pytest.raises(UsageError, match=words), experiment_lock(tmp_path / "x", "x"):
            pass
        with experiment_lock(tmp_path / "y", "y"):
            pass
    with experiment_lock(tmp_path / "x", "x"):
        pass


def test_what_a_killed_run_has_started_keeps_the_lock(tmp_path: Path) -> None:
    """The command ignores SIGTERM for a second; nobody else has the lock as long as it runs."""
    script = (
        "from pathlib import Path\nfrom collectors.processes.process_tree import TreeCommand, run_tree\n"
        "from profiler.experiment.experiment_lock import experiment_lock\n"
        f"with experiment_lock(Path({str(tmp_path)!r}), 'x') as lock:\n"
        "    code = \"trap '' TERM; echo up >up; sleep 1; sleep 0.5; echo done >done\"\n"
        f"    run_tree(TreeCommand(('sh', '-c', code), Path({str(tmp_path)!r}), Path('/dev/null'), held=(lock,)))\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], cwd=os.getcwd()) as process:
        while not (tmp_path / "up").exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
    with experiment_lock(tmp_path, "x"):
        assert (tmp_path / "done").exists()


def test_the_lock_is_not_handed_on_to_commands(tmp_path: Path) -> None:
    """What goes on in the background when a command has ended, such as a compiler's server, keeps no lock."""
    with experiment_lock(tmp_path, "x") as lock:
        code = "sleep 60 & echo $! >pid"
        run_tree(TreeCommand(("sh", "-c", code), tmp_path, Path("/dev/null"), held=(lock,)))
    server = int((tmp_path / "pid").read_text())
    try:
        with experiment_lock(tmp_path, "x"):
            os.kill(server, 0)
    finally:
        os.kill(server, 9)
