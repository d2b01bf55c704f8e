"""Sites: what an address map and rules say of each address, asked once."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from profiler.model.arrays import Int32Column, Int64Column, UInt64Column
from symbolize.unwind.code_rules import CodeRules
from symbolize.unwind.code_sites import CodeSites
from symbolize.unwind.rule_rows import NO_RULES

LIMIT = 1 << 47


class Pages:
    """In space s every even page up to the limit is mapped, to DSO s at the address shifted by s."""

    def __init__(self) -> None:
        self.asked = 0

    def resolve(self, address_space: Int64Column, runtime_address: UInt64Column) -> tuple[Int32Column, UInt64Column]:
        self.asked += len(address_space)
        is_mapped = ((runtime_address >> np.uint64(12)) & np.uint64(1) == 0) & (runtime_address < np.uint64(LIMIT))
        offset = np.where(is_mapped, runtime_address + address_space.astype(np.uint64), runtime_address)
        return np.where(is_mapped, address_space, -1).astype(np.int32), offset


frames = st.tuples(
    st.integers(0, 70_000),
    st.one_of(st.integers(0, 0x4000), st.integers(LIMIT - 3, LIMIT + 3), st.integers(0, 2**64 - 2)),
    st.booleans(),
)


@given(st.lists(st.lists(frames, min_size=1, max_size=30), min_size=1, max_size=4))
def test_every_frame_has_the_place_that_the_map_gives(batches: list[list[tuple[int, int, bool]]]) -> None:
    sites = CodeSites(Pages(), CodeRules(lambda row: None))
    for batch in batches:
        space = np.array([frame[0] for frame in batch], np.int64)
        # A caller's address is never 0: nothing returns there.
        address = np.array([max(frame[1], int(frame[2])) for frame in batch], np.uint64)
        is_caller = np.array([frame[2] for frame in batch], np.uint64)
        keys = sites.space_keys(space)
        assert keys is not None
        number = sites.sites(keys, address, is_caller)
        expected_dso, lookup = Pages().resolve(space, address - is_caller)
        is_inside = address < np.uint64(LIMIT)
        expected_dso = np.where(is_inside, expected_dso, -1)
        assert sites.dso[number].tolist() == expected_dso.tolist()
        assert sites.offset[number].tolist() == np.where(expected_dso >= 0, lookup + is_caller, address).tolist()
        assert set(sites.row[number].tolist()) == {NO_RULES}


def test_a_known_address_is_not_asked_for_again() -> None:
    pages = Pages()
    sites = CodeSites(pages, CodeRules(lambda row: None))
    keys = sites.space_keys(np.array([5, 5, 6, 5], np.int64))
    assert keys is not None
    address = np.array([0x2000, 0x2000, 0x2000, 0x2001], np.uint64)
    first = sites.sites(keys, address, False)
    assert pages.asked == len(sites) == 3
    assert first[0] == first[1] != first[2]
    assert sites.sites(keys, address, False).tolist() == first.tolist()
    assert pages.asked == 3
    as_callers = sites.sites(keys, address, True)
    assert pages.asked == 6
    assert not set(as_callers.tolist()) & set(first.tolist())


def test_more_spaces_than_numbers_are_refused_and_columns_grow() -> None:
    sites = CodeSites(Pages(), CodeRules(lambda row: None))
    spaces = np.arange(65_000, dtype=np.int64)
    keys = sites.space_keys(spaces)
    assert keys is not None
    number = sites.sites(keys, np.full(len(spaces), 0x2000, np.uint64), False)
    assert sites.dso[number].tolist() == spaces.tolist()
    assert sites.space_keys(np.arange(65_000, 66_000)) is None
    again = sites.space_keys(spaces[:10])
    assert again is not None
    assert again.tolist() == keys[:10].tolist()
