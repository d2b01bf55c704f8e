"""What else happened on a host, from counters before and after."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace

from collectors.disturbance import HostActivity, disturbances, host_activity

S = 1_000_000_000
BEFORE = HostActivity(0, 0, 0, 0, 0, 0, cpus=2, tick_ns=10_000_000)
AFTER = replace(BEFORE, monotonic_ns=10 * S, realtime_ns=10 * S, busy_ns=10 * S, own_ns=10 * S)


def test_a_program_alone_on_its_host() -> None:
    assert disturbances(BEFORE, AFTER) == ()


def test_work_of_others() -> None:
    assert disturbances(BEFORE, replace(AFTER, busy_ns=19 * S)) == ("0.9 CPUs were busy with other work",)
    assert disturbances(BEFORE, replace(AFTER, busy_ns=12 * S)) == ()


def test_ticks_of_a_short_run_are_no_work_of_others() -> None:
    short = replace(AFTER, monotonic_ns=S // 10, realtime_ns=S // 10, busy_ns=S // 5, own_ns=S // 7)
    assert disturbances(BEFORE, short) == ()


def test_stolen_time() -> None:
    assert disturbances(BEFORE, replace(AFTER, stolen_ns=4 * S)) == ("the hypervisor took 20 % of the CPU time",)


def test_heat() -> None:
    assert disturbances(BEFORE, replace(AFTER, throttled=3)) == ("a CPU was slowed down for its heat (3 times)",)


def test_steps_of_the_clock() -> None:
    assert disturbances(BEFORE, replace(AFTER, realtime_ns=8 * S)) == ("the clock was set by -2.0 s",)
    assert disturbances(BEFORE, replace(AFTER, realtime_ns=10 * S + 50_000_000)) == ()
    hours = replace(AFTER, monotonic_ns=3600 * S, realtime_ns=3602 * S)
    assert disturbances(BEFORE, hours) == (), "the clock may be slewed by half a millisecond a second"


def test_counters_of_this_host_see_a_child_that_is_not_waited_for() -> None:
    """Work of a child counts as of others until it was waited for, then as own."""
    before = host_activity()
    spinning = "import time\nend = time.process_time() + 1.5\nwhile time.process_time() < end: pass"
    child = subprocess.Popen([sys.executable, "-c", spinning])
    while child.poll() is None:
        time.sleep(0.05)
    after = host_activity()
    assert after.own_ns - before.own_ns >= 1.5 * S
    assert after.busy_ns - before.busy_ns >= 1.4 * S
    assert after.realtime_ns > before.realtime_ns
