"""The server's log: lines on standard error, without secrets, and without tracebacks unless asked for."""

from __future__ import annotations

import logging
import os
import re
import time
from types import TracebackType
from typing import TextIO

from profiler.service.access.token_registry import SECRET_PREFIX
from reports.plain_text import printable

_TRACEBACK_VARIABLE = "SLOTSCOPE_TRACEBACK"
_SECRET = re.compile(rf"{SECRET_PREFIX}[A-Za-z0-9_%-]*")


def log_to(stream: TextIO, has_requests: bool) -> None:
    """``has_requests``: a line per request too."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_LineFormatter("%(asctime)sZ %(levelname)s %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("slotscope.serve").setLevel(logging.INFO)
    logging.getLogger("uvicorn.access").setLevel(logging.INFO if has_requests else logging.WARNING)


class _LineFormatter(logging.Formatter):
    """One line per event.  Whatever looks like a token is cut out of the finished line, wherever it came from."""

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = ""

    def format(self, record: logging.LogRecord) -> str:
        return _SECRET.sub(f"{SECRET_PREFIX}***", super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Agents' words are in it: nobody else begins a line, or speaks to the terminal."""
        return printable(super().formatMessage(record))

    def formatException(
        self, ei: tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
    ) -> str:
        if os.environ.get(_TRACEBACK_VARIABLE) or ei[1] is None:
            return super().formatException(ei)
        return printable(f"{_place(ei[2])}{type(ei[1]).__name__}: {ei[1]}".splitlines()[0])


def _place(trace: TracebackType | None) -> str:
    """Where it was raised: file and line."""
    if trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    return f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}: "
