from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from symbolize.dwarf.strings import make_pool


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), max_size=20))
def test_every_text_comes_back(texts: list[str]) -> None:
    pool = make_pool(texts)
    assert [pool.text(row) for row in range(len(pool))] == texts


def test_lone_surrogates_do_not_fail() -> None:
    assert make_pool(["a\udcff"]).text(0) == "a?"
