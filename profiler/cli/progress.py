"""Progress of slow work on standard error; quick work stays silent."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self, TextIO

from reports.plain_text import printable, shorten_middle

PATIENCE_S = 1.0

_LINE_WIDTH = 78


@dataclass(slots=True)
class SlowProgress:
    """Call it with what is being done.  From ``PATIENCE_S`` seconds after its creation on it shows at most one message a
    second: on a terminal in one line that is overwritten, elsewhere as plain lines.  Use it as a context manager."""

    stream: TextIO
    clock: Callable[[], float] = time.monotonic
    _next_s: float = field(init=False)
    _has_line: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self._next_s = self.clock() + PATIENCE_S

    def __call__(self, message: str) -> None:
        now_s = self.clock()
        if now_s < self._next_s:
            return
        self._next_s = now_s + PATIENCE_S
        if self.stream.isatty():
            self.stream.write(f"\r\x1b[K{shorten_middle(printable(message), _LINE_WIDTH)}")
            self._has_line = True
        else:
            self.stream.write(f"{printable(message)}\n")
        self.stream.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Removes the line from the terminal, so that results and errors start on a clean one."""
        if self._has_line:
            self.stream.write("\r\x1b[K")
            self.stream.flush()
            self._has_line = False
