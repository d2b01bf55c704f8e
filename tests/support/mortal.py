"""`slotscope` that kills itself with SIGKILL before a line of its own.

$DIES_IN, "part of a path:function", says of which function, $DIES_AT which line, from 1, counted over all its calls in all
threads.  Without them nothing happens.  The wall clock is shifted where $SHIFT_FILE is set.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

from profiler.cli.main import main
from support.shifted_agent import shift_clock


def die_at(line: int, path: str, function: str) -> None:
    counted = itertools.count(1)

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        code = frame.f_code
        if event == "call":
            return trace if code.co_name == function and path in code.co_filename else None
        if event == "line" and next(counted) == line:
            os.write(2, f"killed before {code.co_filename}:{frame.f_lineno} in {function}\n".encode())
            os.kill(os.getpid(), signal.SIGKILL)
        return trace

    threading.settrace(trace)
    sys.settrace(trace)


if __name__ == "__main__":
    if os.environ.get("SHIFT_FILE"):
        shift_clock()
    if os.environ.get("DIES_AT"):
        path, _, function = os.environ["DIES_IN"].partition(":")
        die_at(int(os.environ["DIES_AT"]), path, function)
    sys.exit(main())
