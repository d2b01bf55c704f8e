"""Where a command reads and writes: the store, the streams, and what the terminal can show."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from profiler.model.quick_dataclass import dataclass

if TYPE_CHECKING:
    from profiler.store.store import Store
    from reports.terminal_table import TerminalStyle

STORE_VARIABLE = "SLOTSCOPE_STORE"
DEFAULT_STORE = ".slotscope"

_WIDTH_ELSEWHERE = 120
_NARROWEST = 40


@dataclass(frozen=True, slots=True)
class CliContext:
    """``store_directory`` need not exist; commands that only read files never look at it."""

    store_directory: Path
    stdout: TextIO
    stderr: TextIO

    @property
    def debug_directory(self) -> Path:
        """Where debug files that agents sent lie, if any did."""
        from profiler.store.debug_tree import debug_directory

        return debug_directory(self.store_directory)


def default_store_directory(environment: Mapping[str, str]) -> Path:
    """$SLOTSCOPE_STORE, else ``.slotscope`` in the working directory."""
    return Path(environment.get(STORE_VARIABLE) or DEFAULT_STORE)


def existing_store(context: CliContext) -> Store | None:
    """The store, opened for reading; None when there is none yet.  ``StoreError`` when it is damaged."""
    from profiler.store.presence import is_store

    if not is_store(context.store_directory):
        return None
    from profiler.store.store import open_store

    return open_store(context.store_directory, create=False)


def terminal_style(context: CliContext, environment: Mapping[str, str] | None = None) -> TerminalStyle:
    """Colour only on a terminal that can show it, and never with NO_COLOR (https://no-color.org).  The width is the
    terminal's; for files and pipes $COLUMNS, else 120."""
    import shutil

    from reports.terminal_table import TerminalStyle

    variables = os.environ if environment is None else environment
    is_terminal = context.stdout.isatty()
    color = is_terminal and not variables.get("NO_COLOR") and variables.get("TERM") != "dumb"
    width = variables.get("COLUMNS", "")
    if width.isdecimal() and int(width):
        return TerminalStyle(max(_NARROWEST, int(width)), color)
    return TerminalStyle(max(_NARROWEST, shutil.get_terminal_size().columns) if is_terminal else _WIDTH_ELSEWHERE, color)
