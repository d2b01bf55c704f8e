"""The systemd units of agent and aggregator, as systemd itself reads them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
AGENT = ROOT / "collectors" / "agent" / "slotscope-agent.service"
SERVE = ROOT / "profiler" / "service" / "listening" / "slotscope-serve.service"
# systemd's own measure goes from 0 to 10, times ten; an ordinary service has 96, these have 29 and 14 with systemd 252.
EXPOSURE = {AGENT: 40, SERVE: 20}
both = pytest.mark.parametrize("source", [AGENT, SERVE], ids=lambda path: path.stem)


def unit(source: Path, directory: Path) -> Path:
    """With a program that is there: what is installed on this machine is not the matter."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    made = directory / source.name
    made.write_text(source.read_text().replace("/usr/local/bin/slotscope", sys.executable))
    return made


@both
def test_systemd_finds_nothing_wrong_with_it(source: Path, tmp_path: Path) -> None:
    command = ["systemd-analyze", "verify", str(unit(source, tmp_path))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@both
def test_a_mistake_in_it_would_be_found(source: Path, tmp_path: Path) -> None:
    made = unit(source, tmp_path)
    made.write_text(made.read_text().replace("NoNewPrivileges", "NoNewPrivilege"))
    done = subprocess.run(["systemd-analyze", "verify", str(made)], capture_output=True, text=True, check=False)
    assert "'NoNewPrivilege'" in done.stderr


@both
def test_it_is_confined_as_far_as_its_work_allows(source: Path, tmp_path: Path) -> None:
    threshold = f"--threshold={EXPOSURE[source]}"
    command = ["systemd-analyze", "security", "--offline=true", "--no-pager", threshold, str(unit(source, tmp_path))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "--offline" in done.stderr:
        pytest.skip("this systemd-analyze cannot look at a file")
    assert done.returncode == 0, done.stdout.splitlines()[-1]
