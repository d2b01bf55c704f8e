"""The thread table holds the threads of the samples that count, no others."""

from __future__ import annotations

import numpy as np
import pytest

from collectors.ingest.thread_names import StringTable, name_timeline, thread_table
from collectors.perf_data.side_band import SideBand


@pytest.mark.parametrize(("rows", "tids", "renumbered"), [([], [], []), ([2, 0, 2], [11, 13], [1, 0, 1]), ([1], [12], [0])])
def test_threads_whose_samples_were_all_left_out(rows: list[int], tids: list[int], renumbered: list[int]) -> None:
    pairs = np.array([10 | tid << 32 for tid in (11, 12, 13)], np.uint64)
    strings = StringTable()
    times = np.arange(len(rows), dtype=np.uint64)
    table, thread = thread_table(np.array(rows, np.int32), times, pairs, name_timeline(SideBand(), strings), strings)
    assert table.tid.tolist() == tids
    assert table.pid.tolist() == [10] * len(tids)
    assert thread.tolist() == renumbered
