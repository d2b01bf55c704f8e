"""The errors that slotscope raises on purpose.

    SlotscopeError            exit code 1: the work failed or the input is damaged
    |-- FormatError           a file is not what it should be; names source and byte offset
    |-- CaptureError          perf or the profiled program could not be run
    |-- SymbolizeError        a binary or its debug information cannot be read
    |-- StoreError            the store is missing, damaged or written by a newer version
    |   `-- StoreFullError    no room is left on its disk
    |-- AnalysisError         the data cannot answer the question that was asked
    `-- UsageError            exit code 2: wrong options, unknown selector, bad rule file

The message is one line: what is wrong, where (file, offset, host), and the way out.  Only ``profiler.cli.main`` catches
``SlotscopeError``; everything else lets it pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from profiler.model.costs import MissingSymbols


class SlotscopeError(Exception):
    """Base of all expected failures; ``exit_code`` is the process's exit code."""

    exit_code = 1


class FormatError(SlotscopeError):
    """Damaged or foreign input.

    ``source`` is the file's name as the user gave it, ``offset`` the byte offset in it (``None``: the file as a whole).
    """

    def __init__(self, source: str, message: str, offset: int | None = None) -> None:
        self.source = source
        self.offset = offset
        self.reason = message
        where = source if offset is None else f"{source}: byte {offset}"
        super().__init__(f"{where}: {message}")


class CaptureError(SlotscopeError):
    """perf or the profiled program could not be started, or failed."""


class SymbolizeError(SlotscopeError):
    """A binary or its debug information cannot be used."""


class StoreError(SlotscopeError):
    """The store cannot be opened, read or written."""


class StoreFullError(StoreError):
    """No room on the store's disk, or in its quota: the same may succeed later."""


class AnalysisError(SlotscopeError):
    """The captures cannot answer the question, e.g. a phase that matches nothing.

    ``missing``: files without names in which the answer may lie, heaviest first.
    """

    def __init__(self, message: str, missing: Sequence[MissingSymbols] = ()) -> None:
        super().__init__(message)
        self.missing = tuple(missing)


class UsageError(SlotscopeError):
    """The command line, a selector, a plan or a rule file is wrong."""

    exit_code = 2
