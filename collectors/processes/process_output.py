"""The end of what a process printed, and how that tells of its own end."""

from __future__ import annotations

import os
import signal
from pathlib import Path

# As far as it is kept with a run.
OUTPUT_TAIL_BYTES = 16 * 1024
_LONGEST_LINE = 200


def output_tail(output: Path) -> str:
    """The last ``OUTPUT_TAIL_BYTES`` of a file."""
    with output.open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - OUTPUT_TAIL_BYTES))
        return stream.read(OUTPUT_TAIL_BYTES).decode("utf-8", "replace")


def last_line(text: str) -> str:
    """The last line that is not blank, its first 200 characters; "" when there is none."""
    lines = text.strip().splitlines()
    return lines[-1][:_LONGEST_LINE] if lines else ""


def with_last_line(what: str, text: str, joint: str = ": ") -> str:
    """``what``, and behind ``joint`` the last line of ``text``, if it has one."""
    line = last_line(text)
    return f"{what}{joint}{line}" if line else what


def exit_text(exit_code: int) -> str:
    """How a process ended; ``exit_code`` below 0: the signal that ended it."""
    if exit_code >= 0:
        return f"exit code {exit_code}"
    try:
        return f"killed by {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"killed by signal {-exit_code}"


def ending_text(exit_code: int, output: Path) -> str:
    """How a process ended, with the last line it printed: "exit code 3; its last line: no such table"."""
    return with_last_line(exit_text(exit_code), output_tail(output), "; its last line: ")
