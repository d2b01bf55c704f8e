"""The systemd unit of the agent, as systemd itself reads it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

UNIT = Path(__file__).resolve().parents[2] / "collectors" / "agent" / "slotscope-agent.service"


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """With a program that is there: what is installed on this machine is not the matter."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    made = tmp_path / UNIT.name
    made.write_text(UNIT.read_text().replace("/usr/local/bin/slotscope", sys.executable))
    return made


def test_systemd_finds_nothing_wrong_with_it(unit: Path) -> None:
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_a_mistake_in_it_would_be_found(unit: Path) -> None:
    unit.write_text(unit.read_text().replace("NoNewPrivileges", "NoNewPrivilege"))
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert "'NoNewPrivilege'" in done.stderr


def test_it_is_confined_as_far_as_profiling_allows(unit: Path) -> None:
    """systemd's own measure goes from 0 to 10, an ordinary service has 9.6; the unit has 2.9 with systemd 252."""
    command = ["systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=40", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "--offline" in done.stderr:
        pytest.skip("this systemd-analyze cannot look at a file")
    assert done.returncode == 0, done.stdout.splitlines()[-1]
