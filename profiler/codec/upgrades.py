"""How captures written by older versions become current ones: one step per format version.

To change the format: raise ``CURRENT_VERSION``, add the step from the version before it to ``UPGRADES``, and describe the
change in docs/formats.md.  A field added to a value type with a default needs a new version too, but no work in its step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TypeVar

from profiler.codec.capture_tables import SHAPES
from profiler.codec.column_tables import Columns, TableShape
from profiler.codec.json_values import Json
from profiler.errors import FormatError
from profiler.model.quick_dataclass import dataclass

CURRENT_VERSION = 3
Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class StoredCapture:
    """A capture between bytes and values.  ``tables`` is empty when only the head was asked for."""

    head: Mapping[str, Json]
    tables: Mapping[str, Columns]


@dataclass(frozen=True, slots=True)
class Upgrade:
    """The step from one version to the next.  ``shapes``: the tables of the *old* version, to read them by."""

    shapes: tuple[TableShape, ...]
    head: Callable[[Mapping[str, Json]], Mapping[str, Json]]
    tables: Callable[[Mapping[str, Columns]], Mapping[str, Columns]]


def _as_it_was(part: Part) -> Part:
    return part


# Version 2 knows one more kind of DSO (source files), version 3 whole runs of one node; what was written before has neither.
UPGRADES: Mapping[int, Upgrade] = MappingProxyType(
    {1: Upgrade(SHAPES, _as_it_was, _as_it_was), 2: Upgrade(SHAPES, _as_it_was, _as_it_was)}
)


def check_version(version: int, name: str, current: int = CURRENT_VERSION, upgrades: Mapping[int, Upgrade] = UPGRADES) -> None:
    """``FormatError`` that names both versions unless ``version`` is the current one or can be upgraded to it."""
    if version > current:
        raise FormatError(
            name, f"format version {version}, but this slotscope reads up to {current}: use the slotscope that wrote it", 8
        )
    if any(step not in upgrades for step in range(version, current)):
        raise FormatError(name, f"format version {version} is too old for this slotscope, which writes {current}", 8)


def upgrade(stored: StoredCapture, version: int, current: int, upgrades: Mapping[int, Upgrade]) -> StoredCapture:
    """Applies the steps from ``version`` to ``current`` in order."""
    for step in range(version, current):
        stored = replace(stored, head=upgrades[step].head(stored.head))
        if stored.tables:
            stored = replace(stored, tables=upgrades[step].tables(stored.tables))
    return stored
