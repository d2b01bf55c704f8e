"""How call stacks are asked for."""

from __future__ import annotations

import re

from profiler.errors import UsageError
from profiler.model.quick_dataclass import dataclass

DEFAULT_DUMP_BYTES = 16384
LARGEST_DUMP_BYTES = 65528  # perf's limit: the record's size is 16 bits wide
_MODES = ("auto", "fp", "dwarf", "lbr", "none")
_REQUEST = re.compile(r"(\w+)(?:,(\d+))?")


@dataclass(frozen=True, slots=True)
class CallGraphRequest:
    """``mode``: "auto", "fp", "dwarf", "lbr" or "none".  ``dump_bytes``: of user stack per sample, for dwarf."""

    mode: str = "auto"
    dump_bytes: int = DEFAULT_DUMP_BYTES


def parse_call_graph(text: str) -> CallGraphRequest:
    """The value of ``--call-graph``.  ``UsageError`` for an unknown mode or a size that perf cannot take."""
    match = _REQUEST.fullmatch(text)
    if match is None or match[1] not in _MODES or (match[2] and match[1] != "dwarf"):
        raise UsageError(f"--call-graph {text!r}: expected auto, fp, dwarf[,SIZE], lbr or none")
    size = int(match[2]) if match[2] else DEFAULT_DUMP_BYTES
    if not 8 <= size <= LARGEST_DUMP_BYTES or size % 8:
        raise UsageError(f"--call-graph {text!r}: the size is a multiple of 8 from 8 to {LARGEST_DUMP_BYTES} bytes")
    return CallGraphRequest(match[1], size)
