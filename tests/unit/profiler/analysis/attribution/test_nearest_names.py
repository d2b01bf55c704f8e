"""Suggestions for patterns that match nothing."""

from __future__ import annotations

from profiler.analysis.attribution.nearest_names import nearest_names

NAMES = ["phase::hash", "phase::epoch", "state_processing::complete_state_advance", "malloc", "std::vector::push_back"]


def test_misspelled_and_partial_names() -> None:
    assert nearest_names("phase::hsah", NAMES)[0] == "phase::hash"
    assert nearest_names("complete_state_advanze", NAMES)[0] == "state_processing::complete_state_advance"
    assert nearest_names("^STATE_ADVANCE$", NAMES)[0] == "state_processing::complete_state_advance"


def test_nothing_is_near() -> None:
    assert nearest_names("qqqq", NAMES) == ()
    assert nearest_names("x", []) == ()
    assert nearest_names("^$", NAMES) == ()


def test_limit_and_ties_by_name() -> None:
    assert nearest_names("f::x1", ["f::x3", "f::x2", "f::x4"], limit=2) == ("f::x2", "f::x3")
