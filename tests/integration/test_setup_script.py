"""scripts/setup.sh on machines that lack something: it names the command that installs it and changes nothing."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
ORDINARY_TOOLS = ("bash", "cat", "dirname", "sed", "sha256sum", "tr")
NEEDED = ("perf", "g++", "readelf", "llvm-symbolizer", "pgrep")


class Machine:
    """A directory of programs that is the whole PATH, and a copy of the files that the script reads."""

    def __init__(self, directory: Path) -> None:
        self.programs = directory / "bin"
        self.checkout = directory / "checkout"
        self.programs.mkdir()
        (self.checkout / "scripts").mkdir(parents=True)
        shutil.copy(ROOT / "scripts" / "setup.sh", self.checkout / "scripts")
        for name in ("pyproject.toml", "constraints.txt"):
            shutil.copy(ROOT / name, self.checkout)
        for name in ORDINARY_TOOLS:
            (self.programs / name).symlink_to(str(shutil.which(name)))
        self.add("python3", f'exec {sys.executable} "$@"')
        self.add("id", "echo 1000")

    def add(self, name: str, script: str = "exit 0") -> None:
        path = self.programs / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def set_up(self, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.programs / "bash"), "scripts/setup.sh"],
            cwd=self.checkout,
            env={"PATH": str(self.programs), "HOME": str(self.checkout), **environment},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_everything_is_missing_on_debian(machine: Machine) -> None:
    machine.add("apt-get")
    done = machine.set_up()
    assert done.returncode == 1
    assert "missing: perf compiler binutils llvm procps" in done.stderr
    perf = "linux-tools-generic" if is_ubuntu() else "linux-perf"
    install = f"apt-get update && apt-get install -y --no-install-recommends {perf} g++ binutils llvm procps"
    assert f"sudo sh -c '{install}" in done.stderr
    assert not (machine.checkout / ".venv").exists()


@pytest.mark.parametrize(
    ("manager", "command"),
    [
        ("dnf", "dnf install -y perf gcc-c++ binutils llvm procps-ng"),
        ("pacman", "pacman -S --needed perf gcc binutils llvm procps-ng"),
    ],
)
def test_everything_is_missing_elsewhere(machine: Machine, manager: str, command: str) -> None:
    machine.add(manager)
    done = machine.set_up()
    assert done.returncode == 1
    assert command in done.stderr


def test_no_package_manager_is_known(machine: Machine) -> None:
    machine.add("perf")
    machine.add("g++")
    done = machine.set_up()
    assert done.returncode == 1
    assert "missing: binutils llvm procps; install them" in done.stderr


def test_perf_that_does_not_run_counts_as_missing(machine: Machine) -> None:
    """Ubuntu's /usr/bin/perf without the package for the running kernel."""
    add_all(machine, NEEDED)
    machine.add("perf", "exit 2")
    machine.add("apt-get")
    assert "missing: perf" in machine.set_up().stderr


def test_old_python_is_refused_even_for_analysis(machine: Machine) -> None:
    machine.add("python3", "exit 1")
    machine.add("apt-get")
    done = machine.set_up(SLOTSCOPE_ANALYSIS_ONLY="1")
    assert done.returncode == 1
    assert "missing: python." in done.stderr
    assert "python3 python3-venv" in done.stderr


def test_python_without_ensurepip_needs_the_venv_package(machine: Machine) -> None:
    machine.add("python3", f'case "$2" in *ensurepip*) exit 1;; esac; exec {sys.executable} "$@"')
    machine.add("apt-get")
    assert "install -y --no-install-recommends python3-venv" in machine.set_up(SLOTSCOPE_ANALYSIS_ONLY="1").stderr


def test_installation_that_does_not_help_is_an_error(machine: Machine) -> None:
    add_all(machine, NEEDED[1:])
    for name in ("sh", "rm", "tail"):
        (machine.programs / name).symlink_to(str(shutil.which(name)))
    machine.add("id", "echo 0")
    machine.add("apt-get", "echo installed")
    done = machine.set_up()
    assert done.returncode == 1
    assert "still missing after the installation: perf" in done.stderr


def test_failed_installation_shows_why(machine: Machine) -> None:
    for name in ("sh", "rm", "tail"):
        (machine.programs / name).symlink_to(str(shutil.which(name)))
    machine.add("id", "echo 0")
    machine.add("apt-get", "echo E: no network; exit 100")
    done = machine.set_up()
    assert done.returncode == 1
    assert "E: no network" in done.stderr
    assert "setup: this failed: apt-get update" in done.stderr


def test_environment_that_is_up_to_date_is_left_alone(machine: Machine) -> None:
    add_all(machine, NEEDED)
    python = machine.checkout / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\ncase "$1" in -m) echo "$@" >>calls;; esac\n')
    python.chmod(0o755)
    assert machine.set_up().returncode == 0
    first = (machine.checkout / "calls").read_text()
    assert machine.set_up().returncode == 0
    assert (machine.checkout / "calls").read_text() == first
    (machine.checkout / "constraints.txt").write_text("numpy==2.0\n")
    assert machine.set_up().returncode == 0
    assert (machine.checkout / "calls").read_text() == 2 * first
    assert "-c constraints.txt --no-build-isolation" in first
    assert "-e .[dev]" in first


def add_all(machine: Machine, names: Sequence[str]) -> None:
    for name in names:
        machine.add(name)


def is_ubuntu() -> bool:
    release = Path("/etc/os-release")
    return release.exists() and "ID=ubuntu" in release.read_text().splitlines()
