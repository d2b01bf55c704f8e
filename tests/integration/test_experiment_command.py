"""`slotscope experiment` with real processes: whole runs, repeats, and sessions that are killed and taken up again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from profiler.model.run import RunMode
from profiler.store.store import Store, open_store

PLAN = """
[experiment]
name = "sleepers"
runs = 4
seed = 11
profile = "none"
aa = true
retries = 0
command = ["{binary}", "-c", "echo took 12 ms"]
[[variant]]
name = "sh"
binary = "/bin/sh"
[[variant]]
name = "other"
binary = "/bin/sh"
[[metric]]
name = "took"
regex = 'took (\\d+ ms)'
"""
RUNS = Counter({(arm, RunMode.PLAIN, number): 1 for arm in ("sh", "sh-again", "other") for number in range(4)})


def slotscope(directory: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "profiler.cli.main", "--store", str(directory / "store"), *arguments]


def run(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(slotscope(directory, *arguments), capture_output=True, text=True, check=False)


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return path


def valid_runs(store: Store) -> Counter[tuple[str, RunMode, int]]:
    return Counter((r.summary.variant, r.summary.mode, r.summary.round) for r in store.runs() if not r.summary.failure)


def test_a_whole_experiment(plan: Path, tmp_path: Path) -> None:
    dry = run(tmp_path, "experiment", "run", str(plan), "--dry-run")
    assert dry.stdout.startswith("sleepers: 3 arms, 4 rounds, 12 runs in all, seed 11\n")
    assert "is not known" in dry.stdout
    assert not (tmp_path / "store").exists()
    done = run(tmp_path, "experiment", "run", str(plan))
    assert done.returncode == 0, done.stderr
    store = open_store(tmp_path / "store", create=False)
    assert valid_runs(store) == RUNS
    shown = run(tmp_path, "experiment", "show", "--format", "json")
    found = json.loads(shown.stdout)
    assert found["experiment"]["name"] == "sleepers"
    (condition,) = found["conditions"]
    assert [candidate["name"] for candidate in condition["candidates"]] == ["sh-again", "other"]
    took = next(metric for metric in condition["candidates"][1]["metrics"] if metric["name"] == "took")
    assert took["values"] == {"baseline": [12e6] * 4, "candidate": [12e6] * 4}
    again = run(tmp_path, "experiment", "run", str(plan), "--resume")
    assert again.returncode == 2
    assert "no session of experiment 'sleepers' was cut short" in again.stderr


def test_neither_a_changed_plan_nor_other_programs_are_resumed(plan: Path, tmp_path: Path) -> None:
    program = tmp_path / "other-sh"
    shutil.copy("/bin/sh", program)
    text = PLAN.replace('name = "other"\nbinary = "/bin/sh"', f'name = "other"\nbinary = "{program}"')
    plan.write_text(text)
    running = slotscope(tmp_path, "experiment", "run", str(plan))
    with subprocess.Popen(running, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("round 1"):
                break
        process.send_signal(signal.SIGINT)
        process.stderr.read()
    plan.write_text(PLAN.replace("12 ms", "13 ms"))
    resumed = run(tmp_path, "experiment", "run", str(plan), "--resume")
    assert resumed.returncode == 2
    assert "changed since session" in resumed.stderr
    plan.write_text(text)
    program.write_bytes(program.read_bytes() + b"\0")
    resumed = run(tmp_path, "experiment", "run", str(plan), "--resume")
    assert (resumed.returncode, f"{program} changed since session" in resumed.stderr) == (2, True)
    program.unlink()
    resumed = run(tmp_path, "experiment", "run", str(plan), "--resume")
    assert (resumed.returncode, f"{program} cannot be read any more" in resumed.stderr.replace("\n", "")) == (2, True)


def test_bad_plans_are_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text("[experiment]\nname = 3\n")
    done = run(tmp_path, "experiment", "run", str(tmp_path / "plan.toml"))
    assert done.returncode == 2
    assert done.stderr == f"slotscope: error: {tmp_path}/plan.toml:2: experiment.name: expected text in quotes, not 3\n"
    assert os.listdir(tmp_path) == ["plan.toml"]
