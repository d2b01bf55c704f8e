"""`slotscope` that kills itself with SIGKILL before a line of its own: $DIES_AT counts lines of functions in files whose
paths hold one of the words in $DIES_IN, over all threads; without it nothing happens.  The wall clock is shifted where $SHIFT_FILE is set.
"""

from __future__ import annotations

import inspect
import itertools
import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

from profiler.cli.main import main
from support.shifted_agent import shift_clock


def die_at(line: int, words: tuple[str, ...]) -> None:
    """Before the line of this number, from 1."""
    counted = itertools.count(1)

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if event == "call":
            code = frame.f_code
            # Modules and classes are made before anything happens; the walk over the spool's files is most of what happens.
            is_meant = code.co_flags & inspect.CO_OPTIMIZED and code.co_name != "used_bytes"
            return trace if is_meant and any(word in code.co_filename for word in words) else None
        if event == "line" and next(counted) == line:
            code = frame.f_code
            os.write(2, f"killed before {code.co_filename}:{frame.f_lineno} in {code.co_name}\n".encode())
            os.kill(os.getpid(), signal.SIGKILL)
        return trace

    threading.settrace(trace)
    sys.settrace(trace)


if __name__ == "__main__":
    if os.environ.get("SHIFT_FILE"):
        shift_clock()
    if os.environ.get("DIES_AT"):
        die_at(int(os.environ["DIES_AT"]), tuple(os.environ["DIES_IN"].split()))
    sys.exit(main())
