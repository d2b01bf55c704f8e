"""`slotscope` on a host whose wall clock is wrong: by as many ns as the file in $SHIFT_FILE says at each moment."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from profiler.cli.main import main

_SHIFT = Path(os.environ["SHIFT_FILE"])
_TRUE_NS = time.time_ns


def _shifted_ns() -> int:
    return _TRUE_NS() + int(_SHIFT.read_text())


if __name__ == "__main__":
    time.time_ns = _shifted_ns
    time.time = lambda: _shifted_ns() / 1e9
    sys.exit(main())
