"""Changes in time against a plain search."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from collectors.ingest.timeline import Timeline

KEYS = st.integers(0, 3) | st.just(2**64 - 1)
TIMES = st.integers(0, 6) | st.integers(0, 2**64 - 1)
CHANGES = st.lists(st.tuples(KEYS, TIMES, st.integers(0, 100)), max_size=12).map(lambda rows: sorted(rows, key=lambda r: r[1]))


def value_at(changes: list[tuple[int, int, int]], key: int, time: int) -> int:
    own = [(when, value) for owner, when, value in changes if owner == key]
    earlier = [value for when, value in own if when <= time]
    return earlier[-1] if earlier else own[0][1] if own else -1


@given(CHANGES, st.lists(st.tuples(KEYS, TIMES), max_size=12))
def test_value_in_force(changes: list[tuple[int, int, int]], asked: list[tuple[int, int]]) -> None:
    timeline = Timeline(changes)
    keys, times = np.array([a[0] for a in asked], np.uint64), np.array([a[1] for a in asked], np.uint64)
    expected = [value_at(changes, key, time) for key, time in asked]
    assert timeline.at(keys, times).tolist() == expected
    for key in set(keys.tolist()):
        chosen = keys == key
        assert timeline.at(keys[chosen], times[chosen]).tolist() == [value_at(changes, key, t) for t in times[chosen].tolist()]


def test_changes_between() -> None:
    timeline = Timeline([(1, 10, 5), (1, 20, 6), (2, 0, 7)])
    keys = np.array([1, 1, 2, 9], np.uint64)
    first, last = np.array([12, 12, 0, 0], np.uint64), np.array([19, 20, 99, 99], np.uint64)
    assert timeline.changes_between(keys, first, last).tolist() == [False, True, False, False]
