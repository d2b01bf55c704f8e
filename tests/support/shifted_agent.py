"""`slotscope` on a host whose wall clock is wrong: by as many ns as the file in $SHIFT_FILE says at each moment."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from profiler.cli.main import main


def shift_clock() -> None:
    """Of this process only."""
    file, true_ns = Path(os.environ["SHIFT_FILE"]), time.time_ns

    def shifted_ns() -> int:
        return true_ns() + int(file.read_text())

    time.time_ns = shifted_ns
    time.time = lambda: shifted_ns() / 1e9


if __name__ == "__main__":
    shift_clock()
    sys.exit(main())
