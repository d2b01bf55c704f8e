"""Standard streams that take any text and may go away."""

from __future__ import annotations

import codecs
import io
import os
import sys
from typing import TextIO

_ERRORS = "slotscope-readable"
_ASCII = {"µ": "u", "±": "+-"}


def accept_any_text(stream: TextIO) -> None:
    """Characters that the stream's encoding does not know are shown in ASCII or as escapes instead of raising."""
    codecs.register_error(_ERRORS, _readable)
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors=_ERRORS)


def open_missing_streams() -> None:
    """Python has no stream objects for descriptors that were closed before it began (``>&-``): what goes there is dropped."""
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 -- for the life of the process
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def silence(stream: TextIO) -> None:
    """What is still buffered goes nowhere, so that the interpreter does not complain at exit."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def _readable(error: UnicodeError) -> tuple[str | bytes, int]:
    if isinstance(error, UnicodeEncodeError):
        plain = _ASCII.get(error.object[error.start])
        if plain is not None:
            return plain, error.start + 1
    return codecs.backslashreplace_errors(error)
