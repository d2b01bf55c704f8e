"""A Python program of known shape: `three` works three times as long as `one` (in CPU time of the thread), in the main
thread, in a second one and in a child process; a third thread sleeps.  Ends when its standard input does."""

import subprocess
import sys
import threading
import time

STEP_S = 0.004


def spin(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(100))


def three() -> None:
    spin(3 * STEP_S)


def one() -> None:
    spin(STEP_S)


def work() -> None:
    while True:
        three()
        one()


def sleeper() -> None:
    time.sleep(3600)


if "child" in sys.argv:
    threading.Thread(target=work, name="child;of it", daemon=True).start()
else:
    child = subprocess.Popen([sys.executable, __file__, "child"], stdin=sys.stdin)
    threading.Thread(target=work, name="worker", daemon=True).start()
    threading.Thread(target=sleeper, name='sleeper "x"; <b>', daemon=True).start()
    print(child.pid, flush=True)
sys.stdin.read()
