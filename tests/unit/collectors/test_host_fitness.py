"""Facts of this host, against what other tools and files say of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from collectors.host_fitness import (
    _capabilities,
    _hypervisor,
    host_fitness,
    perf_capabilities,
    permitted_of_file,
    process_fitness,
    trial_recording,
)
from profiler.errors import CaptureError


def test_capabilities_in_effect() -> None:
    assert _capabilities("Name:\tx\nCapEff:\t0000004000000000\n") == ("CAP_PERFMON",)
    assert _capabilities("CapEff:\t0000000000200000\n") == ("CAP_SYS_ADMIN",)
    assert _capabilities("CapEff:\t000001ffffffffff\n") == ("CAP_PERFMON", "CAP_SYS_ADMIN")
    assert _capabilities("CapEff:\t0000000000000000\n") == _capabilities("") == ()


def test_capabilities_of_a_file() -> None:
    """As `setcap cap_perfmon+ep` and `setcap cap_sys_admin+ep` wrote them (getfattr -e hex)."""
    assert permitted_of_file(bytes.fromhex("0100000200000000000000004000000000000000")) == ("CAP_PERFMON",)
    assert permitted_of_file(bytes.fromhex("0100000200002000000000000000000000000000")) == ("CAP_SYS_ADMIN",)
    assert permitted_of_file(b"") == permitted_of_file(bytes(20)) == ()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file capabilities")
def test_a_perf_that_was_given_a_capability(tmp_path: Path) -> None:
    program = tmp_path / "perf"
    program.write_text("")
    assert perf_capabilities(str(program)) == ()
    if shutil.which("setcap") is None or subprocess.run(["setcap", "cap_perfmon+ep", str(program)], check=False).returncode:
        pytest.skip("setcap is not there, or the file system keeps no capabilities")
    assert perf_capabilities(str(program)) == ("CAP_PERFMON of perf itself",)


def test_hypervisor_by_the_processor_flag() -> None:
    assert _hypervisor("flags\t\t: fpu tsc\n") == ""
    assert _hypervisor("flags\t\t: fpu hypervisor lahf_lm\n")


@pytest.mark.perf
@pytest.mark.beside
def test_this_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = host_fitness(tmp_path / "not/there/yet", True, ())
    version = subprocess.run(["perf", "version"], capture_output=True, text=True, check=True).stdout
    assert found.perf_version in version
    assert found.clock_problem == ""
    assert found.cpus == int(subprocess.run(["getconf", "_NPROCESSORS_ONLN"], capture_output=True, check=True).stdout)
    assert (found.store_problem, found.store_free_bytes > 0) == ("", True)
    assert found.is_root is (os.geteuid() == 0)
    counted = subprocess.run(["perf", "stat", "-x,", "-e", "instructions", "true"], capture_output=True, text=True, check=False)
    assert bool(found.hardware_problem) is ("not supported" in counted.stderr or counted.returncode != 0)


def test_without_perf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = host_fitness(tmp_path, False, ())
    assert found.perf_version == ""
    assert "perf is not installed" in found.perf_problem
    assert found.clock_problem == found.hardware_problem == ""


def test_a_perf_that_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "perf"
    program.write_text(
        "#!/bin/sh\necho 'Access to performance monitoring and observability operations is limited.' >&2\nexit 255\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert "perf may not record here" in trial_recording(os.getpid(), "cpu-clock")
    assert list(tmp_path.iterdir()) == [program]


def test_a_store_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "file").write_text("")
    assert "is no directory" in host_fitness(tmp_path / "file" / "store", False, ()).store_problem
    assert "File name too long" in host_fitness(tmp_path / ("x" * 300), False, ()).store_problem


@pytest.mark.perf
@pytest.mark.beside
def test_processes() -> None:
    python = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    native = subprocess.Popen([shutil.which("cat") or "cat"], stdin=subprocess.PIPE)
    assert python.stdin is not None
    assert native.stdin is not None
    try:
        native.stdin.flush()
        assert process_fitness(native.pid).problem == ""
        assert process_fitness(native.pid).is_python is False
        assert process_fitness(python.pid).is_python is True
        assert process_fitness(python.pid).is_in_container is False
    finally:
        for process in (python, native):
            assert process.stdin is not None
            process.stdin.close()
            process.wait()


def test_no_such_process() -> None:
    with pytest.raises(CaptureError, match="there is no process 4194305"):
        process_fitness(4_194_305)


def test_interrupted_trial_leaves_no_recorder(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted:
        is_aborted = False

        def stop(self) -> None:
            raise KeyboardInterrupt

        def abort(self) -> None:
            self.is_aborted = True

    recorder = Interrupted()
    monkeypatch.setattr("collectors.host_fitness.start_recording", lambda *_: recorder)
    with pytest.raises(KeyboardInterrupt):
        trial_recording(os.getpid(), "cpu-clock")
    assert recorder.is_aborted
