"""Running processes: which is what when, and what a window of one says."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from collectors.processes.process_times import CpuUsage
from collectors.prometheus import parse_page, parse_series
from collectors.targets.target_finder import TargetFinder
from collectors.targets.watched_process import ProcessMoment, look_at
from profiler.errors import CaptureError
from profiler.experiment.plan.experiment_plan import PlanTarget
from profiler.experiment.plan.plan_file import parse_plan
from profiler.experiment.targets.target_periods import target_periods
from profiler.experiment.targets.target_window import EXCLUDED, TargetMoment, WindowRule, window_outcome

SERIES = parse_series("st", "st_seconds")
RULE = WindowRule(window_s=10.0, settle_s=30.0, pages=(SERIES,))
TARGET = PlanTarget("base", "n0", pid=7, metrics="http://x/metrics")
TICKS = os.sysconf("SC_CLK_TCK")


def crossover(nodes: int) -> str:
    text = '[experiment]\nname = "x"\ndesign = "crossover"\nprofile = "none"\nruns = 4\nbaseline = "new"\n'
    text += 'swap = ["deploy", "{node}", "{variant}"]\n[[variant]]\nname = "old"\n[[variant]]\nname = "new"\n'
    for node in range(nodes):
        for variant in ("old", "new"):
            text += f'[[target]]\nvariant = "{variant}"\nnode = "n{node}"\ncomm = "node{node}"\n'
    return text


def test_orders_of_a_crossover_alternate() -> None:
    first, second = target_periods(parse_plan(crossover(4), Path("/p.toml")))
    assert (first.rounds, second.rounds) == (range(4), range(4, 8))
    assert [(t.node, t.variant) for t in first.targets] == [("n0", "new"), ("n1", "old"), ("n2", "new"), ("n3", "old")]
    assert [(t.node, t.variant) for t in second.targets] == [("n0", "old"), ("n1", "new"), ("n2", "old"), ("n3", "new")]


def moment(seconds: float, cpu_ns: int, total: tuple[float, int], started: int = 100) -> TargetMoment:
    """At so many seconds of the monotonic clock; ``total``: of the page's counters."""
    page = parse_page(f"st_seconds_sum {total[0]}\nst_seconds_count {total[1]}\n", (SERIES,))
    return TargetMoment(round(seconds * 1e9), ProcessMoment(((7, started),), CpuUsage(cpu_ns, 0, 0)), page)


def test_metrics_of_a_window() -> None:
    """3 s of CPU time in 12 s of wall time are 2.5 s in a window of 10; (5.5 - 5) s over 20 observations are 25 ms."""
    now = time.monotonic()
    outcome = window_outcome(TARGET, moment(now, 4_000_000_000, (5.0, 100)), moment(now + 12, 7_000_000_000, (5.5, 120)), RULE)
    assert outcome.failure == ""
    assert outcome.wall_ns == 0, "its length is the plan's"
    assert [(metric.name, metric.value, metric.unit) for metric in outcome.metrics] == [
        ("CPU time", pytest.approx(2.5e9), "ns"),
        ("st", pytest.approx(25e6), "ns"),
    ]


def test_windows_that_do_not_count() -> None:
    now = time.monotonic()
    before, after = moment(now, 1, (5.0, 100)), moment(now + 10, 2, (6.0, 101))
    reasons = {
        "the process restarted in the window": (before, moment(now + 10, 2, (6.0, 101), started=200)),
        "before the window: gone": (TargetMoment(0, failure="gone"), after),
        "after the window: gone": (before, TargetMoment(0, failure="gone")),
        "the window took 30.0 s in place of 10 s": (before, moment(now + 30, 2, (6.0, 101))),
        "the window took 0.2 s in place of 10 s": (before, moment(now + 0.2, 2, (6.0, 101))),
        "the window took 0.0 s in place of 10 s": (before, moment(now, 2, (6.0, 101))),
        "metric 'st': the counters of st_seconds were reset in the window": (before, moment(now + 10, 2, (6.0, 99))),
    }
    for reason, (first, last) in reasons.items():
        assert window_outcome(TARGET, first, last, RULE).failure == reason
    excluded = window_outcome(replace(TARGET, is_excluded=True), before, after, RULE)
    assert (excluded.failure, len(excluded.metrics)) == (EXCLUDED, 2)


def test_process_that_has_not_settled() -> None:
    now = time.monotonic()
    started = round((time.clock_gettime(time.CLOCK_BOOTTIME) - 12) * TICKS)
    outcome = window_outcome(TARGET, moment(now, 1, (5.0, 1), started), moment(now + 10, 2, (6.0, 2), started), RULE)
    assert outcome.failure == "the process had started only 12 s before, and settle is 30 s"


def test_processes_are_found_by_id_and_by_name(tmp_path: Path) -> None:
    named = tmp_path / "watched-one"
    named.symlink_to("/bin/sleep")
    with subprocess.Popen([named, "60"]) as process, subprocess.Popen([sys.executable, "-c", "input()"], stdin=-1) as other:
        for _ in range(500):
            if Path(f"/proc/{process.pid}/comm").read_text() == "watched-one\n":
                break
            time.sleep(0.01)
        by_name = look_at(TargetFinder(comm="watched-.*"))
        assert by_name.identities == look_at(TargetFinder(pid=process.pid)).identities
        assert by_name.identities[0][0] == process.pid
        with subprocess.Popen([named, "60"]) as second:
            time.sleep(0.3)
            with pytest.raises(CaptureError, match="2 processes are named 'watched-one'"):
                look_at(TargetFinder(comm="watched-one"))
            second.kill()
        process.kill()
        other.kill()
    with pytest.raises(CaptureError, match="there is no process named 'watched-one'"):
        look_at(TargetFinder(comm="watched-one"))
    with pytest.raises(CaptureError, match=f"there is no process {process.pid}"):
        look_at(TargetFinder(pid=process.pid))
