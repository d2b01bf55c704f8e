"""Places hold every kind of address without mixing them up."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from collectors.ingest.dso_table import DsoTable
from collectors.ingest.places import Places

ADDRESSES = st.integers(0, 2**64 - 2)


@given(st.lists(st.tuples(st.integers(-1, 64000), st.integers(0, 2**47 - 1)) | st.tuples(st.just(-1), ADDRESSES), min_size=1))
def test_user_places_come_back(pairs: list[tuple[int, int]]) -> None:
    places = Places()
    dso, offset = np.array([p[0] for p in pairs], np.int32), np.array([p[1] for p in pairs], np.uint64)
    numbers = places.user(dso, offset)
    columns = places.columns(is_kernel_high=True)
    assert columns.dso[numbers].tolist() == [max(row, DsoTable.UNKNOWN) for row in dso.tolist()]
    assert columns.offset[numbers].tolist() == offset.tolist()
    assert len(places) == len({(max(row, 0), at) for row, at in pairs})


@given(st.lists(st.integers(2**63, 2**64 - 1), min_size=1), st.lists(ADDRESSES, min_size=1))
def test_kernel_and_guest_places_come_back(kernel: list[int], guest: list[int]) -> None:
    places = Places()
    inside, outside = places.kernel(np.array(kernel, np.uint64)), places.guest(np.array(guest, np.uint64))
    columns = places.columns(is_kernel_high=True)
    assert columns.offset[inside].tolist() == kernel
    assert set(columns.dso[inside].tolist()) == {DsoTable.KERNEL}
    assert columns.offset[outside].tolist() == guest
    assert set(columns.dso[outside].tolist()) == {DsoTable.GUEST}


def test_a_32_bit_kernel_lies_in_the_lower_half() -> None:
    places = Places()
    number = places.kernel(np.array([0xC0001234], np.uint64))
    assert places.columns(is_kernel_high=False).offset[number].tolist() == [0xC0001234]
