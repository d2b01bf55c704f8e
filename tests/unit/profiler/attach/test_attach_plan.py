"""What can be asked of `slotscope attach`, and the windows that come of it."""

from __future__ import annotations

import os
import signal
from concurrent.futures import Future
from dataclasses import replace

import pytest

from collectors.processes.process_times import CpuUsage
from collectors.prometheus import MetricsPage, PageMetric, parse_page
from collectors.targets.target_finder import TargetFinder
from profiler.attach.plan import AttachPlan, check_attach_plan, variant_of, window_length_s
from profiler.attach.stop_request import StopRequest
from profiler.attach.window import CpuReading, Edge, WindowTimes, window_outcome
from profiler.cli.main import main
from profiler.errors import UsageError

PLAN = AttachPlan(TargetFinder(pid=1), window_s=60.0)
SECOND = 1_000_000_000


def test_windows_fit_the_duration() -> None:
    assert window_length_s(0, None) == 60
    assert window_length_s(30, None) == 30
    assert window_length_s(90, None) == 45
    assert window_length_s(600, 30) == 30
    assert window_length_s(0, 5) == 5
    with pytest.raises(UsageError, match=r"no multiple of --window 60.*ask for 120"):
        window_length_s(90, 60)
    with pytest.raises(UsageError, match=r"--duration 5 is no multiple of --window 60.*ask for 60"):
        window_length_s(5, 60)
    for window_s in (0.0, -1.0, 0.9, float("nan"), float("inf")):
        with pytest.raises(UsageError, match="expected at least 1 second"):
            window_length_s(0, window_s)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (replace(PLAN, frequency_hz=0), "--frequency 0"),
        (replace(PLAN, variant="a/b"), "variant name 'a/b'"),
        (replace(PLAN, metrics_address="http://h/m"), "--metrics needs --metric"),
        (replace(PLAN, pages=(PageMetric("a", "a", frozenset()),)), "--metric needs --metrics"),
    ],
)
def test_what_cannot_work(plan: AttachPlan, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_attach_plan(plan)


def test_variants_are_named_after_processes() -> None:
    assert [variant_of(name) for name in ("beacon_node", "tokio-rt w", "last", "...", ":x")] == [
        "beacon_node",
        "tokio-rt_w",
        "last_",
        "process_",
        "_x",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "one of the arguments --pid --comm --cgroup --unit --container is required"),
        (["--pid", "1", "--comm", "x"], "not allowed with argument"),
        (["--pid", "1", "--pid", "2"], "argument --pid: given twice, and one only can be meant"),
        (["--comm", "a", "--comm", "b"], "argument --comm: given twice"),
        (["--pid", "0"], "expected the number of a process"),
        (["--pid", "1", "--exclude", "x"], "--exclude is for --comm"),
        (["--comm", "x", "--exclude", "("], "--exclude '('"),
        (["--pid", "1", "--metric", "proof", "--metrics", "http://h/"], "expected NAME=SERIES"),
        (["--pid", "1", "--call-graph", "x"], "--call-graph 'x'"),
    ],
)
def test_wrong_usage(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attach", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("seconds", ["-5", "0", "nan", "inf", "-inf"])
@pytest.mark.parametrize("option", ["--duration", "--window"])
def test_what_is_no_length_of_time(option: str, seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attach", "--pid", "1", f"{option}={seconds}"]) == 2
    told = capsys.readouterr().err
    assert f"{option} {seconds}: expected" in told
    assert "internal" not in told


def test_the_first_signal_is_a_wish_and_the_second_interrupts() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with StopRequest() as stop:
        assert stop.number == 0
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.number == signal.SIGTERM
        assert os.read(stop.descriptor, 1) == b"!"
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGTERM) is before


def edge(total_s: float, user: int, system: int, page: MetricsPage | None = None) -> Edge:
    """``user``, ``system``: in ticks."""
    found: Future[MetricsPage] = Future()
    if page is not None:
        found.set_result(page)
    reading = CpuReading(CpuUsage(round(total_s * SECOND), user, system), (1,))
    return Edge(reading, found if page is not None else None)


def test_a_whole_window() -> None:
    """30 s of CPU time, a third of whose ticks are the system's."""
    times = WindowTimes(5 * SECOND, 65 * SECOND, 40_000_000, "")
    found = window_outcome(times, edge(100, 6000, 3000), edge(130, 8000, 4000), PLAN)
    assert (found.is_whole, found.note) == (True, "")
    assert (found.outcome.wall_ns, found.outcome.user_ns, found.outcome.system_ns) == (60 * SECOND, 20 * SECOND, 10 * SECOND)
    assert [(metric.name, metric.value, metric.unit) for metric in found.outcome.metrics] == [("perf cpu", 40e6, "ns")]


def test_a_window_that_was_cut_short_says_why() -> None:
    cut = window_outcome(WindowTimes(0, 12 * SECOND, 0, "the process ended"), edge(0, 0, 0), edge(1, 1, 0), PLAN)
    assert (cut.is_whole, cut.note) == (False, "a window lasted 12.0 s in place of 60 s: the process ended")
    late = window_outcome(WindowTimes(0, 75 * SECOND, 0, ""), edge(0, 0, 0), edge(1, 1, 0), PLAN)
    assert (late.is_whole, late.note) == (False, "a window lasted 75.0 s in place of 60 s")
    at_edge = window_outcome(WindowTimes(0, 60 * SECOND, 0, "the process ended"), edge(0, 0, 0), edge(1, 1, 0), PLAN)
    assert (at_edge.is_whole, at_edge.note) == (True, "at the end of a window the process ended")


def test_metrics_between_the_edges() -> None:
    metric = PageMetric("import", "import_seconds", frozenset())
    plan = replace(PLAN, metrics_address="http://h/metrics", pages=(metric,))

    def page(total: float, count: int) -> MetricsPage:
        return parse_page(f"import_seconds_sum {total}\nimport_seconds_count {count}\n", plan.pages)

    times = WindowTimes(0, 60 * SECOND, 1, "")
    found = window_outcome(times, edge(0, 0, 0, page(2.0, 10)), edge(1, 1, 0, page(5.0, 30)), plan)
    assert found.outcome.metrics[0].value == pytest.approx(0.15e9)  # 3 s in 20 observations
    missing = window_outcome(times, edge(0, 0, 0, page(2.0, 10)), edge(1, 1, 0, page(2.0, 10)), plan)
    assert missing.note == "no metrics: metric 'import': import_seconds has no observation in the window"
    assert [metric.name for metric in missing.outcome.metrics] == ["perf cpu"]
    assert missing.outcome.failure == ""
