"""Stacks chosen by what is on them."""

from __future__ import annotations

import pytest

from profiler.analysis.attribution.focus import focused
from profiler.analysis.attribution.logical_stacks import expand
from profiler.errors import UsageError
from support.profile_from_text import profile_from_text

DRAWN = """
main            main          main               main
tree::push      sha::f@s.c:1  libc.so!malloc     Vec::hash as Hash::hash
sha::f > inner  .             .                  .
"""


def chosen(focus: str = "", ignore: str = "") -> str:
    symbolized = profile_from_text(DRAWN).symbolized()
    stacks = expand(symbolized)
    rows = stacks.innermost[symbolized.capture.samples.stack]
    return "".join("x" if value else "." for value in focused(symbolized, stacks, focus, ignore)[rows].tolist())


@pytest.mark.parametrize(
    ("focus", "ignore", "expected"),
    [
        ("", "", "xxxx"),
        ("^sha::", "", "xx.."),
        ("", "^sha::", "..xx"),
        ("^inner$", "", "x..."),
        ("sha", "tree", ".x.."),
        (r"s\.c$", "", ".x.."),
        (r"^libc\.so$", "", "..x."),
        ("Hash::", "", "...x"),
        ("nothing", "", "...."),
        ("", "main", "...."),
    ],
)
def test_focus_and_ignore(focus: str, ignore: str, expected: str) -> None:
    assert chosen(focus, ignore) == expected


def test_patterns_that_are_none() -> None:
    with pytest.raises(UsageError, match=r"--focus '\(' is no regular expression"):
        chosen(focus="(")
    with pytest.raises(UsageError, match=r"--ignore '\*' is no regular expression"):
        chosen(ignore="*")
