"""The argument list of perf, and one line for each of its complaints (texts of perf 5.10 and 6.1)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from collectors.profilers import perf_control, perf_record
from collectors.profilers.perf_control import ControlDescriptors
from collectors.profilers.perf_record import explain_failure, perf_arguments, perf_version, start_recording
from profiler.errors import CaptureError
from profiler.model.run import PerfSettings

CONTROL = ControlDescriptors(5, 8)


def arguments(settings: PerfSettings, large_buffers: bool = False) -> str:
    return " ".join(perf_arguments(settings, (77,), Path("/tmp/a b/perf.data"), CONTROL, large_buffers))


def test_frequency_and_frame_pointers() -> None:
    assert arguments(PerfSettings("cpu-clock", 1999, 0, "fp")) == (
        "perf record -N -e cpu-clock -F 1999 -o /tmp/a b/perf.data -p 77 --call-graph fp -D -1 --control fd:5,8"
    )


def test_stack_dumps_have_their_size_and_larger_buffers_where_allowed() -> None:
    settings = PerfSettings("cpu-clock", 99, 0, "dwarf", dump_bytes=8192)
    assert " --call-graph dwarf,8192 -D" in arguments(settings)
    assert " --call-graph dwarf,8192 -m 4M -D" in arguments(settings, large_buffers=True)


def test_period_instead_of_frequency_and_no_call_graph() -> None:
    text = arguments(PerfSettings("page-faults", 0, 10, "none"), large_buffers=True)
    assert " -e page-faults -c 10 " in text
    assert "--call-graph" not in text
    assert "-F" not in text
    assert "-m" not in text.split()


def test_file_name_is_one_argument() -> None:
    listed = perf_arguments(PerfSettings("cpu-clock", 1), (1, 20), Path("/tmp/a b; rm x"), CONTROL, False)
    assert listed[listed.index("-o") + 1] == "/tmp/a b; rm x"
    assert listed[listed.index("-p") + 1] == "1,20"


@pytest.mark.parametrize(
    ("complaint", "expected"),
    [
        (
            ["Error:", "Access to performance monitoring and observability operations is limited."],
            "sysctl kernel.perf_event_paranoid=1",
        ),
        (["You may not have permission to collect stats."], "cap_perfmon"),
        (["event syntax error: 'nosuch'", r"                     \___ parser error"], "'nosuch'.*`perf list`"),
        (["Error:", "The cycles event is not supported."], "perf cannot record event"),
        (["Error: unknown option `control'", "", " Usage: perf record [<options>] [<command>]"], "5.10 or later"),
        (["failed to mmap with 12 (Cannot allocate memory)"], "could not start recording: failed to mmap with 12"),
        ([], "it gave no reason"),
    ],
)
def test_complaints_become_one_line_with_the_way_out(complaint: list[str], expected: str) -> None:
    message = explain_failure(complaint, PerfSettings("nosuch", 99))
    assert "\n" not in message
    with pytest.raises(CaptureError, match=expected):
        raise CaptureError(message)


def test_perf_that_is_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CaptureError, match="perf is not installed: install linux-perf"):
        perf_version()
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(CaptureError, match="perf is not installed"):
        start_recording(PerfSettings("cpu-clock", 99), os.getpid(), tmp_path / "perf.data")
    assert len(os.listdir("/proc/self/fd")) == before


def test_perf_that_only_complains(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = tmp_path / "perf"
    fake.write_text("#!/bin/sh\necho 'WARNING: perf not found for kernel 6.18' >&2\nexit 2\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CaptureError, match="perf does not run here: WARNING: perf not found for kernel"):
        perf_version()
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(CaptureError, match="perf could not start recording: WARNING: perf not found"):
        start_recording(PerfSettings("cpu-clock", 99), os.getpid(), tmp_path / "perf.data")
    assert len(os.listdir("/proc/self/fd")) == before


def test_perf_that_never_acknowledges(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = tmp_path / "perf"
    fake.write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    for module in (perf_control, perf_record):
        monkeypatch.setattr(module, "ACKNOWLEDGE_S", 0.2)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(CaptureError, match="did not acknowledge within 0 s"):
        start_recording(PerfSettings("cpu-clock", 99), os.getpid(), tmp_path / "perf.data")
    with pytest.raises(CaptureError, match="`perf version` did not end"):
        perf_version()
    assert len(os.listdir("/proc/self/fd")) == before
