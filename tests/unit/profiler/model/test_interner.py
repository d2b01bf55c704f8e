"""The interner against a dictionary."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from profiler.model.interner import Interner, first_rows, mixed

# Few distinct values in the bits that choose the slot, so that keys compete for slots.
KEYS = st.integers(1, 60) | st.integers(1, 2**64 - 1) | st.integers(1, 40).map(lambda n: n << 58)


@given(st.lists(st.lists(KEYS, min_size=1, max_size=80), max_size=8))
def test_numbers_are_those_of_a_dictionary(batches: list[list[int]]) -> None:
    interner = Interner(bits=2)
    known: dict[int, int] = {}
    for batch in batches:
        numbers, new_keys = interner.intern(np.array(batch, np.uint64))
        expected_new = [key for key in dict.fromkeys(batch) if key not in known]
        known |= {key: len(known) + row for row, key in enumerate(expected_new)}
        assert new_keys.tolist() == expected_new
        assert numbers.tolist() == [known[key] for key in batch]
    assert interner.keys().tolist() == list(known)
    assert len(interner) == len(known)


@given(st.lists(KEYS, unique=True, max_size=200), st.lists(KEYS, max_size=50))
def test_find_knows_exactly_what_was_added(added: list[int], asked: list[int]) -> None:
    interner = Interner(bits=3)
    interner.add(np.array(added, np.uint64))
    expected = [added.index(key) if key in added else -1 for key in asked + added]
    assert interner.find(np.array(asked + added, np.uint64)).tolist() == expected


def test_mixing_has_no_collisions_on_small_numbers() -> None:
    values = np.arange(1, 100_001, dtype=np.uint64)
    assert len(np.unique(mixed(values))) == 100_000


@given(st.lists(KEYS | st.just(0), max_size=300))
def test_first_rows(keys: list[int]) -> None:
    assert first_rows(np.array(keys, np.uint64)).tolist() == [keys.index(key) for key in keys]
