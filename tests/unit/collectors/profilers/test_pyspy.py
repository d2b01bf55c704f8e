"""The argument list of py-spy, and one line for each of its complaints (texts of py-spy 0.4.3)."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from collectors.profilers import pyspy
from collectors.profilers.pyspy import PySpySettings, explain_failure, pyspy_arguments, pyspy_end, pyspy_path, start_pyspy
from profiler.errors import CaptureError, FormatError
from profiler.model.run import CaptureInfo, RunIdentity, RunMode


def arguments(settings: PySpySettings) -> str:
    return " ".join(pyspy_arguments("py-spy", settings, 77, Path("/tmp/out.json")))


def test_threads_and_children_are_told_apart_and_idle_ones_left_out() -> None:
    assert arguments(PySpySettings()) == (
        "py-spy record --pid 77 --rate 100 --format speedscope --threads --output /tmp/out.json --subprocesses"
    )
    assert "--idle" not in arguments(PySpySettings(has_native=True))


def test_options() -> None:
    text = arguments(PySpySettings(rate_hz=250, has_native=True, follows_children=False, pauses=False))
    assert text.endswith("--rate 250 --format speedscope --threads --output /tmp/out.json --native --nonblocking")


@pytest.mark.parametrize(
    ("complaint", "expected"),
    [
        (
            ["Permission Denied: Try running again with elevated permissions by going 'sudo env \"PATH=$PATH\" !!'"],
            r"may not read process 77 .*ptrace_scope is .*CAP_SYS_PTRACE",
        ),
        (["Error: Operation not permitted (os error 1)"], "may not read process 77"),
        (["Error: Failed to find python version from target process"], "process 77 is not Python"),
        (["Error: No python processes found in process 77 or any of its subprocesses"], "process 77 is not Python"),
        (["Error: Failed to get process executable name. Check that the process is running."], "process 77 has ended"),
        (["Error: Unsupported version of Python: 3.99.1"], r"Python 3\.99\.1, which this py-spy does not know: `pip install"),
        (["Error: something new", "Caused by:"], "could not record process 77: something new$"),
        ([], "it gave no reason"),
    ],
)
def test_complaints_become_one_line(complaint: list[str], expected: str) -> None:
    line = explain_failure(complaint, 77)
    assert re.search(expected, line)
    assert "\n" not in line


def test_what_py_spy_says_at_its_end() -> None:
    lines = [
        "Sampling process 50 times a second. Press Control-C to exit.",
        "1.20s behind in sampling, results may be inaccurate. Try reducing the sampling rate",
        "Stopped sampling because process exited",
        "Wrote speedscope file to 's.json'. Samples: 84 Errors: 3",
        "Visit https://www.speedscope.app/ to view",
    ]
    end = pyspy_end(lines)
    assert (end.errors, end.has_exited, end.messages) == (3, True, (lines[1],))
    assert pyspy_end([lines[0], "Stopped sampling because Control-C pressed"]).has_exited is False


def test_a_process_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"^there is no process 4194305$"):
        start_pyspy(PySpySettings(), 4_194_305, tmp_path / "out")


def test_without_py_spy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(pyspy.sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(CaptureError, match="pip install py-spy"):
        pyspy_path()


def test_a_py_spy_that_is_no_py_spy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "py-spy"
    program.write_text("#!/bin/sh\n[ $1 = --version ] && echo py-spy 0.4.3 && exit\necho 'Error: cannot do it' >&2\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setattr(pyspy.sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(CaptureError, match="could not record process 1: cannot do it"):
        start_pyspy(PySpySettings(), 1, tmp_path / "out")
    program.write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(CaptureError, match="does not run here"):
        start_pyspy(PySpySettings(), 1, tmp_path / "out")
    with pytest.raises(CaptureError, match="does not run here"):
        pyspy.pyspy_version()


FAKE = """#!/bin/sh
[ $1 = --version ] && echo py-spy 9.8.7 && exit
while [ $# -gt 0 ]; do [ $1 = --output ] && output=$2; shift; done
trap 'echo "{damaged" > "$output"; exit CODE' INT
echo 'Sampling process 100 times a second. Press Control-C to exit.'
while :; do sleep 0.01; done
"""


@pytest.mark.parametrize(("code", "error"), [(0, FormatError), (4, CaptureError)])
def test_no_file_stays_behind_whatever_went_wrong(
    code: int, error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "py-spy"
    program.write_text(FAKE.replace("CODE", str(code)))
    program.chmod(0o755)
    monkeypatch.setattr(pyspy.sysconfig, "get_path", lambda name: str(tmp_path))
    recorder = start_pyspy(PySpySettings(), os.getpid(), tmp_path / "out")
    program.unlink()  # its version is known before anything is recorded
    assert recorder.perf.perf_version == "py-spy 9.8.7"
    recorder.stop()
    recorder.end()
    assert (tmp_path / "out").exists()
    with pytest.raises(error):
        recorder.finish(CaptureInfo(RunIdentity("s", "v", 0, RunMode.PROFILED)))
    assert not (tmp_path / "out").exists()
    program.write_text(FAKE.replace("CODE", str(code)))
    program.chmod(0o755)
    recorder = start_pyspy(PySpySettings(), os.getpid(), tmp_path / "out")
    recorder.abort()
    assert not recorder.is_running
    assert not (tmp_path / "out").exists()
