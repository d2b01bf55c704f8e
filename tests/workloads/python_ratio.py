"""`three` works three times as long as `one` (in CPU time of the thread), in the only thread.  It takes
the name of its argument, prints "ready", and ends when it is killed."""

import sys
import time
from pathlib import Path

STEP_S = 0.004


def spin(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(100))


def three() -> None:
    spin(3 * STEP_S)


def one() -> None:
    spin(STEP_S)


Path("/proc/self/comm").write_text(sys.argv[1])
print("ready", flush=True)
while True:
    three()
    one()
