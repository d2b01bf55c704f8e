"""Processes found by cgroup and by systemd unit, with a cgroup tree and a systemctl of our own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from collectors.targets import target_finder
from collectors.targets.target_finder import TargetFinder
from collectors.targets.watched_process import look_at
from profiler.errors import CaptureError


@pytest.fixture
def sleeping() -> Iterator[list[int]]:
    """Three processes that are nobody's children but ours."""
    processes = [subprocess.Popen(["sleep", "60"]) for _ in range(3)]
    yield [process.pid for process in processes]
    for process in processes:
        process.kill()
        process.wait()


def started(pid: int) -> int:
    """Field 22 of /proc/PID/stat (proc(5)), counted behind the name, which ends the only parenthesis here."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def test_all_processes_of_a_cgroup_and_those_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sleeping: list[int]
) -> None:
    monkeypatch.setattr(target_finder, "CGROUPS", tmp_path)
    (tmp_path / "node/worker").mkdir(parents=True)
    (tmp_path / "node/cgroup.procs").write_text(f"{sleeping[0]}\n")
    (tmp_path / "node/worker/cgroup.procs").write_text(f"{sleeping[1]}\n999999999\n")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/cgroup.procs").write_text("")
    found = look_at(TargetFinder(cgroup="/node"))
    assert sorted(found.identities) == sorted((pid, started(pid)) for pid in sleeping[:2])
    assert look_at(TargetFinder(cgroup="node/worker")).identities == ((sleeping[1], started(sleeping[1])),)
    for empty in ("other", "nosuch"):
        with pytest.raises(CaptureError, match=f"there is no process in cgroup {empty}"):
            look_at(TargetFinder(cgroup=empty))


def test_main_process_of_a_unit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sleeping: list[int]) -> None:
    systemctl = tmp_path / "systemctl"
    systemctl.write_text(
        f'#!/bin/sh\ncase "$*" in *"-- node.service") echo {sleeping[2]};; *"-- off.service") echo 0;; *) exit 1;; esac\n'
    )
    systemctl.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert look_at(TargetFinder(unit="node.service")).identities == ((sleeping[2], started(sleeping[2])),)
    for unit in ("off.service", "nosuch.service"):
        with pytest.raises(CaptureError, match=f"there is no process of unit {unit}"):
            look_at(TargetFinder(unit=unit))
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    with pytest.raises(CaptureError, match="systemctl cannot be run"):
        look_at(TargetFinder(unit="node.service"))
