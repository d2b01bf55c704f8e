"""Weight of the stacks that pass through some code, for more kinds of code than a word has bits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from profiler.analysis.quality.run_quality import _outermost, _weights_through

# Two trees by depth: rows 0 and 1 are outermost; 2, 3 are called by 0, 4 by 1; 5 by 2, 6 by 4; 7 by 6.
PREFIX = np.array([-1, -1, 0, 0, 1, 2, 4, 6], np.int32)
LEVELS = (slice(0, 2), slice(2, 5), slice(5, 7), slice(7, 8))
WEIGHT = np.array([0, 0, 1, 10, 100, 1000, 0, 10_000], np.int64)


def test_weights_through_rows() -> None:
    run: Any = SimpleNamespace(weight=WEIGHT, stacks=_Stacks())
    nothing = np.zeros(8, np.bool_)
    columns = [nothing] * 70
    for number, rows in {3: (0,), 63: (2,), 64: (1, 5), 69: (4, 7)}.items():
        columns[number] = nothing.copy()
        columns[number][list(rows)] = True
    expected = [0] * 70
    expected[3], expected[63], expected[64], expected[69] = 1011, 1001, 11_100, 10_100
    assert _weights_through(run, columns) == expected


class _Stacks:
    prefix = PREFIX
    levels = LEVELS

    def __len__(self) -> int:
        return len(PREFIX)


def test_outermost_rows() -> None:
    assert _outermost(PREFIX, np.array([7, 5, 3, 1], np.int32)).tolist() == [1, 0, 0, 1]
