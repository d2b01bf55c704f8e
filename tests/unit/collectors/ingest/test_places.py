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


PLACES = st.lists(st.tuples(st.sampled_from(["user", "kernel", "guest"]), st.integers(-1, 9), ADDRESSES), min_size=1)


def numbered(places: Places, drawn: list[tuple[str, int, int]]) -> list[int]:
    numbers = []
    for kind, dso, address in drawn:
        column = np.array([address], np.uint64)
        if kind == "user":
            found = places.user(np.array([dso if address < 2**47 else -1], np.int32), column)
        else:
            found = places.kernel(column) if kind == "kernel" else places.guest(column)
        numbers += found.tolist()
    return numbers


@given(PLACES, PLACES)
def test_places_of_another_table_are_as_if_they_had_come_here(
    own: list[tuple[str, int, int]], others: list[tuple[str, int, int]]
) -> None:
    here, there, all_here = Places(), Places(), Places()
    numbered(here, own)
    there_numbers = numbered(there, others)
    moved = here.add_keys(there.keys())
    expected = numbered(all_here, [*own, *others])[len(own) :]
    assert moved[there_numbers].tolist() == expected
    for column in ("dso", "offset"):
        assert np.array_equal(getattr(here.columns(True), column), getattr(all_here.columns(True), column))


def test_a_32_bit_kernel_lies_in_the_lower_half() -> None:
    places = Places()
    number = places.kernel(np.array([0xC0001234], np.uint64))
    assert places.columns(is_kernel_high=False).offset[number].tolist() == [0xC0001234]
