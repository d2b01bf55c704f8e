"""Hostile names: what may reach a terminal and a file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from reports.plain_text import printable, shorten_middle, shorten_path, valid_utf8


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("std::vector<int>::push_back(int&&)", "std::vector<int>::push_back(int&&)"),
        ("a\x1b[31mred", "a\\x1b[31mred"),
        ("two\nlines\r\tand\0", "two\\x0alines\\x0d\\x09and\\x00"),
        (b"\xff\xfe x".decode("utf-8", "surrogateescape"), "\\xff\\xfe x"),
        ("right\u202eleft", "right\\u202eleft"),
        ("größe λ 木", "größe λ 木"),
        ("\U000e0001", "\\U000e0001"),
    ],
)
def test_printable(name: str, shown: str) -> None:
    assert printable(name) == shown


def test_valid_utf8_keeps_control_characters() -> None:
    assert valid_utf8("a\x1b\nb") == "a\x1b\nb"
    assert valid_utf8("\udcff\ud800é") == "\\xff\\ud800é"


@given(st.text(st.characters()))
def test_shown_text_is_one_encodable_line(name: str) -> None:
    assert printable(name).isprintable()
    assert printable(name).encode("utf-8").decode("utf-8") == printable(name)
    assert valid_utf8(name).encode("utf-8").decode("utf-8") == valid_utf8(name)


def test_the_middle_goes_first() -> None:
    assert shorten_middle("persistent_tree::with_updated", 20) == "persisten..._updated"
    assert shorten_middle("short", 5) == "short"
    assert shorten_middle("abcdefgh", 3) == "abc"


@given(st.text(), st.integers(1, 40))
def test_shortened_names_fit(name: str, width: int) -> None:
    assert cell_len(shorten_middle(printable(name), width)) <= width


def test_paths_keep_as_many_last_components_as_fit() -> None:
    path = "/home/build/client/consensus/state/src/mod.rs:120"
    assert shorten_path(path, len(path)) == path
    assert shorten_path(path, 30) == ".../state/src/mod.rs:120"
    assert shorten_path(path, 14) == ".../mod.rs:120"
    assert shorten_path(path, 9) == "mod...120"
    assert shorten_path("[no source] libc.so.6", 14) == "[no so....so.6"
