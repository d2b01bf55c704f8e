"""Counts of perf stat, from lines as perf 6.1 prints them, and of a real process."""

from __future__ import annotations

import subprocess
import sys

import pytest

from collectors.profilers.perf_control import ControlDescriptors
from collectors.profilers.perf_stat import StatMetric, counts, start_counting, stat_arguments
from profiler.errors import CaptureError

LINES = """0.76;msec;task-clock;757721;100.00;0.402;CPUs utilized
48;;page-faults;757721;100.00;63.348;K/sec
7006879;ns;duration_time;7006879;100.00;;
2000;;instructions:u;757721;100.00;;
300;;cpu_core/cycles/;757721;100.00;;
<not counted>;;cpu_atom/cycles/;0;0.00;;
12;;cpu/event=0x3c,umask=0x0/;757721;100.00;;
5;;few;757721;50.00;;
<not supported>;;branches;0;100.00;;
"""


def test_values_and_units() -> None:
    asked = [("t", "task-clock"), ("f", "page-faults"), ("d", "duration_time"), ("i", "instructions:u"), ("c", "cycles")]
    asked.append(("raw", "cpu/event=0x3c,umask=0x0/"))
    found = counts([StatMetric(name, event) for name, event in asked], LINES)
    assert [(metric.name, metric.value, metric.unit) for metric in found] == [
        ("t", pytest.approx(760_000), "ns"),
        ("f", 48, ""),
        ("d", 7_006_879, "ns"),
        ("i", 2000, ""),
        ("c", 300, ""),
        ("raw", 12, ""),
    ]


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ("branches", "branches was not supported here"),
        ("few", "counted for 50 % of the time only"),
        ("instructions", "ask for instructions:u"),
        ("nothing", "printed no count of nothing"),
    ],
)
def test_what_was_not_counted_is_no_number(event: str, reason: str) -> None:
    with pytest.raises(CaptureError, match=reason):
        counts([StatMetric("m", event)], LINES)


def test_arguments() -> None:
    listed = stat_arguments([StatMetric("a", "x,y"), StatMetric("b", "z")], (7, 8), ControlDescriptors(3, 4))
    assert " ".join(listed) == "perf stat -x ; -e x,y -e z -p 7,8 -D -1 --control fd:3,4"


@pytest.mark.perf
@pytest.mark.beside
def test_running_process_is_counted_from_start_to_stop() -> None:
    """The program touches 4,000 new pages for every line that it is sent: those of the second line count."""
    script = (
        "import sys, mmap\nkept = []\nfor line in sys.stdin:\n    area = mmap.mmap(-1, 4000 * mmap.PAGESIZE)\n"
        "    for place in range(0, len(area), mmap.PAGESIZE): area[place] = 1\n"
        "    kept.append(area); print('done', flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def touch() -> None:
            process.stdin.write("go\n")  # type: ignore[union-attr]
            process.stdin.flush()  # type: ignore[union-attr]
            assert process.stdout.readline() == "done\n"  # type: ignore[union-attr]

        touch()
        counter = start_counting([StatMetric("faults", "page-faults"), StatMetric("clock", "task-clock")], (process.pid,))
        touch()
        counter.stop()
        faults, clock = counter.finish()
        touch()
        process.stdin.close()
    assert 4000 <= faults.value < 4500
    assert clock.unit == "ns"
    assert clock.value > 0


@pytest.mark.perf
@pytest.mark.beside
def test_event_that_perf_does_not_know() -> None:
    with subprocess.Popen(["sleep", "5"]) as process:
        with pytest.raises(CaptureError, match="perf cannot record event 'no-such-event' here"):
            start_counting([StatMetric("m", "no-such-event")], (process.pid,))
        process.kill()
