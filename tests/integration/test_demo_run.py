"""The demo from end to end: with a recording of its own, and with the shipped recordings where perf may not record."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SLOTSCOPE = [sys.executable, "-m", "profiler.cli.main"]


def run_demo(directory: Path, *options: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": path or os.environ["PATH"]}
    return subprocess.run(
        [*SLOTSCOPE, "demo", *options], cwd=directory, env=environment, capture_output=True, text=True, check=False
    )


def rows(markdown: str) -> dict[str, list[str]]:
    """Cells of the first table by row name."""
    lines = [line.strip("| ").split("|") for line in markdown.splitlines() if line.startswith("|")]
    return {re.sub(r"[`*]", "", cells[0]).strip(): [cell.strip() for cell in cells[1:]] for cells in lines}


def assert_speedscope_file(path: Path, arms: tuple[str, str]) -> None:
    content = json.loads(path.read_text())
    assert content["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert len(content["profiles"]) == 2
    for profile, arm in zip(content["profiles"], arms, strict=True):
        assert arm in profile["name"]
        assert sum(profile["weights"]) == pytest.approx(profile["endValue"])
    names = {frame["name"] for frame in content["shared"]["frames"]}
    assert any("compress_portable" in name for name in names)


@pytest.mark.perf
@pytest.mark.usefixtures("perf")
def test_demo_records_and_finds_the_change(tmp_path: Path) -> None:
    if "sha_ni" not in Path("/proc/cpuinfo").read_text().split():
        pytest.skip("this processor has no SHA-256 instructions")
    done = run_demo(tmp_path, "--quick", "--runs", "4")
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert {path.name for path in tmp_path.iterdir()} == {"demo-out"}
    assert "$ slotscope --store demo-out/store record" in done.stdout
    table = rows((tmp_path / "demo-out" / "report.md").read_text())
    assert table["SHA-256"][-1] == "**faster**"
    assert table["total"][-1] == "**faster**"
    assert "epoch" in table
    assert_speedscope_file(tmp_path / "demo-out" / "ab.speedscope.json", ("portable", "sha-ni"))


def test_demo_analyses_the_shipped_recordings_without_perf(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("true", "g++"):
        (programs / name).symlink_to(str(shutil.which("true")))
    done = run_demo(tmp_path, path=str(programs))
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert "Recording is not possible: perf is not installed" in done.stdout
    table = rows((tmp_path / "demo-out" / "report.md").read_text())
    assert table["SHA-256"][-1] == "**faster**"
    assert_speedscope_file(tmp_path / "demo-out" / "ab.speedscope.json", ("portable", "sha-ni"))
