"""What the demo builds, and what it says where it cannot build or record."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from profiler.cli import demo
from profiler.cli.main import main


def test_candidate_uses_the_sha_instructions_where_there_are_any() -> None:
    baseline, candidate = demo.demo_arms("flags\t\t: fpu sse4_1 sha_ni avx2\n")
    assert (baseline.name, candidate.name) == ("portable", "sha-ni")
    assert set(baseline.flags) - set(candidate.flags) == {"-DPORTABLE_SHA256"}


def test_candidate_is_another_optimization_elsewhere() -> None:
    baseline, candidate = demo.demo_arms("flags\t\t: fpu sse4_1 not_sha_ni_yet\n")
    assert candidate.name == "lto"
    assert "-flto=auto" in candidate.flags
    assert "-DPORTABLE_SHA256" in set(candidate.flags) & set(baseline.flags)


def programs(directory: Path, *names: str) -> str:
    """A PATH with only these programs."""
    directory.mkdir()
    for name in names:
        (directory / name).symlink_to(str(shutil.which(name)))
    return str(directory)


def test_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", programs(tmp_path / "bin", "true"))
    assert demo.recording_obstacle(tmp_path).startswith("g++ is not installed: `apt-get install g++`")


def test_no_perf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = programs(tmp_path / "bin", "true")
    (tmp_path / "bin" / "g++").symlink_to("true")
    monkeypatch.setenv("PATH", path)
    assert "perf is not installed" in demo.recording_obstacle(tmp_path)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["bin"]


def test_perf_may_not_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = programs(tmp_path / "bin", "true", "sh", "echo")
    (tmp_path / "bin" / "g++").symlink_to("true")
    refusal = "Access to performance monitoring and observability operations is limited."
    (tmp_path / "bin" / "perf").write_text(f"#!{shutil.which('sh')}\necho '{refusal}' >&2\nexit 255\n")
    (tmp_path / "bin" / "perf").chmod(0o755)
    monkeypatch.setenv("PATH", path)
    obstacle = demo.recording_obstacle(tmp_path)
    assert "perf may not record here" in obstacle
    assert "sysctl kernel.perf_event_paranoid=1" in obstacle


def test_installed_without_the_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "_CHECKOUT", tmp_path)
    assert main(["demo", "--out", str(tmp_path / "out")]) == 1
    assert "clone it and run `make demo`" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("runs", ["0", "-3", "many"])
def test_number_of_runs(runs: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", f"--runs={runs}"]) == 2
    assert "is not a number of runs" in capsys.readouterr().err
