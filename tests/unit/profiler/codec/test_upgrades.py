"""Older captures are lifted one version at a time."""

from __future__ import annotations

from typing import Any

import pytest

from profiler.codec.upgrades import StoredCapture, Upgrade, check_version, upgrade
from profiler.errors import FormatError


def renames(old: str, new: str) -> Upgrade:
    def renamed(values: Any) -> Any:
        return {new if key == old else key: value for key, value in values.items()}

    return Upgrade((), renamed, renamed)


STEPS = {1: renames("a", "b"), 2: renames("b", "c")}


def test_steps_are_applied_in_order_to_head_and_tables() -> None:
    stored = StoredCapture({"a": 1, "z": 2}, {"a": {}, "y": {}})
    lifted = upgrade(stored, 1, 3, STEPS)
    assert lifted == StoredCapture({"c": 1, "z": 2}, {"c": {}, "y": {}})
    assert upgrade(stored, 3, 3, STEPS) == stored


def test_head_alone_is_lifted_too() -> None:
    assert upgrade(StoredCapture({"b": 1}, {}), 2, 3, STEPS) == StoredCapture({"c": 1}, {})


def test_version_is_judged_before_anything_is_read() -> None:
    check_version(1, "x", 3, STEPS)
    with pytest.raises(FormatError, match="version 4, but this slotscope reads up to 3"):
        check_version(4, "x", 3, STEPS)
    with pytest.raises(FormatError, match="too old"):
        check_version(1, "x", 3, {2: STEPS[2]})
