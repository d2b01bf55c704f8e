"""Functions with their readable names and keys, in one block of text, made only when asked for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from profiler.model.arrays import Int64Column, UInt8Column, distinct
from profiler.model.function import Function, NameSource

# Name, linkage name, key, trait key.
TEXTS = 4
_LINKAGE_NAME = 1
_SOURCES = tuple(NameSource)
# An unresolved name is never demangled.
SOURCES_OF_LINKAGE_NAMES = (NameSource.LINKAGE_NAME, NameSource.SYMBOL_TABLE)


class StoredFunctions:
    """Text k of function i is ``data[start[4 * i + k]:start[4 * i + k + 1]]`` in UTF-8; ``source[i]``: its ``NameSource``."""

    def __init__(self, start: Int64Column, data: bytes | memoryview, source: UInt8Column) -> None:
        self.start = start
        self.data = data
        self.source = source

    def __len__(self) -> int:
        return len(self.source)

    def find(self, linkage_name: str, source: NameSource) -> Function | None:
        """The function of that linkage name and source, None when it is not here."""
        row = self._rows[source].get(linkage_name)
        if row is None:
            return None
        name, linkage, key, trait_key, end = self._bounds[TEXTS * row : TEXTS * row + TEXTS + 1]
        whole = self._whole
        if whole:
            return Function(whole[name:linkage], linkage_name, whole[key:trait_key], whole[trait_key:end], source)
        part = self._part
        return Function(part(name, linkage), linkage_name, part(key, trait_key), part(trait_key, end), source)

    def find_similar(self, linkage_name: str) -> Function | None:
        """One of that linkage name, whatever its source: all but the source is equal in them."""
        for source in SOURCES_OF_LINKAGE_NAMES:
            found = self.find(linkage_name, source)
            if found is not None:
                return found
        return None

    def holds(self, function: Function) -> bool:
        return function.linkage_name in self._rows[function.name_source]

    @cached_property
    def _whole(self) -> str:
        """All texts as one, "" when bytes are not characters."""
        whole = str(self.data, "utf-8", "surrogateescape")
        return whole if len(whole) == len(self.data) else ""

    @cached_property
    def _bounds(self) -> list[int]:
        bounds: list[int] = self.start.tolist()
        return bounds

    @cached_property
    def _rows(self) -> tuple[dict[str, int], ...]:
        """By source: row by linkage name."""
        rows: tuple[dict[str, int], ...] = tuple({} for _ in _SOURCES)
        for source in distinct(self.source).tolist():
            chosen = np.flatnonzero(self.source == source)
            first = chosen * TEXTS + _LINKAGE_NAME
            texts = map(self._part, self.start[first].tolist(), self.start[first + 1].tolist())
            rows[source].update(zip(texts, chosen.tolist(), strict=True))
        return rows

    def _part(self, begin: int, end: int) -> str:
        if self._whole:
            return self._whole[begin:end]
        return str(self.data[begin:end], "utf-8", "surrogateescape")


def store_functions(functions: Sequence[Function]) -> StoredFunctions:
    """Functions in the form in which they are kept."""
    texts = [
        text.encode("utf-8", "surrogateescape")
        for each in functions
        for text in (each.name, each.linkage_name, each.key, each.trait_key)
    ]
    start = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=start[1:])
    return StoredFunctions(start, b"".join(texts), np.array([int(each.name_source) for each in functions], np.uint8))


def joined(first: StoredFunctions, second: StoredFunctions) -> StoredFunctions:
    """The functions of both, which have none in common."""
    return StoredFunctions(
        np.concatenate([first.start, second.start[1:] + first.start[-1]]),
        b"".join([first.data, second.data]),
        np.concatenate([first.source, second.source]),
    )
