"""What an analysis can be asked for: named once, for the analysis itself and for the command line, which must not load it."""

from __future__ import annotations

from enum import StrEnum

STACK_DIMENSIONS = ("function", "symbol", "dso", "file", "line")
SAMPLE_DIMENSIONS = ("thread", "process", "host")
DIMENSIONS = ("category", "group", *STACK_DIMENSIONS, *SAMPLE_DIMENSIONS)
VIEWS = ("leaf", "owner")
DEFAULT_RULE_SETS = ("ethereum", "native")
# Rows that are shown of a table when nothing else is asked for; data for programs is whole.
TABLE_ROWS = 25
MARKDOWN_ROWS = 8


class PhaseScope(StrEnum):
    """Whose samples a phase admits: those of all threads of the process that is in it, of its own thread, or all."""

    PROCESS = "process"
    THREAD = "thread"
    HOST = "host"
