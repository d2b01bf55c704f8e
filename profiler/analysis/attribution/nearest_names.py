"""Names to suggest when a pattern matched nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]{2,}")
_LEAST_SCORE = 0.5


def nearest_names(pattern: str, names: Iterable[str], limit: int = 5) -> tuple[str, ...]:
    """Up to ``limit`` names that look like what ``pattern`` was meant to find, best first; ties by name."""
    import difflib

    words = [word.lower() for word in _WORD.findall(pattern)]
    wanted = re.sub(r"[\\^$.*+?()\[\]{}|]", "", pattern).lower()
    matcher = difflib.SequenceMatcher(None, autojunk=False)
    matcher.set_seq2(wanted.rpartition("::")[2])

    def score(name: str) -> float:
        lowered = name.lower()
        matcher.set_seq1(lowered.rpartition("::")[2])
        return matcher.ratio() + (sum(word in lowered for word in words) / len(words) if words else 0.0)

    ranked = sorted((-score(name), name) for name in set(names) if name)
    return tuple(name for negative, name in ranked[:limit] if -negative >= _LEAST_SCORE)
