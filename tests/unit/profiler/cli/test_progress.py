"""Progress: silent while work is quick."""

from __future__ import annotations

import io

from profiler.cli.progress import SlowProgress
from support.terminal_streams import Clock, Terminal


def test_quick_work_is_silent() -> None:
    stream, clock = io.StringIO(), Clock()
    with SlowProgress(stream, clock) as progress:
        progress("one")
        clock.now_s += 0.9
        progress("two")
    assert stream.getvalue() == ""


def test_slow_work_says_at_most_one_line_a_second() -> None:
    stream, clock = io.StringIO(), Clock()
    with SlowProgress(stream, clock) as progress:
        for number in range(8):
            clock.now_s += 0.5
            progress(f"step {number}\x1b")
    assert stream.getvalue() == "step 1\\x1b\nstep 3\\x1b\nstep 5\\x1b\nstep 7\\x1b\n"


def test_a_terminal_has_one_line_that_is_removed() -> None:
    stream, clock = Terminal(), Clock()
    with SlowProgress(stream, clock) as progress:
        clock.now_s += 2
        progress("reading " + "x" * 200)
    shown = stream.getvalue()
    assert "\n" not in shown
    assert shown.startswith("\r\x1b[Kreading xxx")
    assert len(shown) < 100
    assert shown.endswith("\r\x1b[K")
