"""Lists of CPUs as people write them: 0-3,8."""

from __future__ import annotations

import re

from profiler.errors import UsageError

_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_MOST_CPUS = 1 << 16


def parse_cpus(text: str) -> frozenset[int]:
    """ "0-3,8" as {0, 1, 2, 3, 8}; "" as the empty set.  ``UsageError`` for anything else."""
    cpus: set[int] = set()
    for part in text.split(",") if text else ():
        match = _RANGE.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not first <= last < _MOST_CPUS:
            raise UsageError(f"--cpus {text!r}: expected numbers and ranges such as 0-3,8")
        cpus.update(range(first, last + 1))
    return frozenset(cpus)
