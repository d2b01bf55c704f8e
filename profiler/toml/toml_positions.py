"""Where tables and keys stand in a TOML text: ``tomllib`` reads the values and forgets the lines.

Only for texts that ``tomllib`` has accepted.  Headers and keys are what people point at, so keys inside inline tables have the
line on which the inline table begins.
"""

from __future__ import annotations

import re

from profiler.model.quick_dataclass import dataclass

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?")
_KEY = re.compile(r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*=""")
_STRINGS = ('"""', "'''", '"', "'")


@dataclass(frozen=True, slots=True)
class TableKey:
    """``table``: name of a top-level table; ``number``: which of the array's tables, from 0."""

    table: str
    number: int
    key: str


@dataclass(frozen=True, slots=True)
class TomlPositions:
    """Lines count from 1."""

    tables: dict[tuple[str, int], int]
    keys: dict[TableKey, int]

    def line_of(self, table: str, number: int = 0, key: str = "") -> int:
        """Line of the key, else of the table, else 1."""
        found = self.keys.get(TableKey(table, number, key)) if key else None
        return found or self.tables.get((table, number), 1)


def toml_positions(text: str) -> TomlPositions:
    """Positions of top-level tables, arrays of tables, and the keys directly in them."""
    tables: dict[tuple[str, int], int] = {}
    keys: dict[TableKey, int] = {}
    counts: dict[str, int] = {}
    table, number, prefix = "", 0, ""
    inside = _Nesting()
    for line_number, line in enumerate(text.splitlines(), 1):
        if inside.is_open:
            inside.add(line)
            continue
        if header := _HEADER.match(line):
            name, _, prefix = header[2].replace('"', "").replace(" ", "").partition(".")
            if header[1] == "[[" and not prefix:
                counts[name] = counts.get(name, -1) + 1
            table, number = name, max(counts.get(name, 0), 0)
            tables.setdefault((table, number), line_number)
            if prefix:
                keys.setdefault(TableKey(table, number, prefix.partition(".")[0]), line_number)
        elif found := _KEY.match(line):
            first = found[1].partition(".")[0].strip().strip("\"'")
            keys.setdefault(TableKey(table, number, prefix.partition(".")[0] if prefix else first), line_number)
            inside.add(line[found.end() :])
    return TomlPositions(tables, keys)


class _Nesting:
    """Whether a value goes on in the next line: an open bracket, brace or multi-line string."""

    def __init__(self) -> None:
        self._depth = 0
        self._string = ""

    @property
    def is_open(self) -> bool:
        return self._depth > 0 or self._string in ('"""', "'''")

    def add(self, line: str) -> None:
        position = 0
        while position < len(line):
            position = self._inside_string(line, position) if self._string else self._outside(line, position)
        if self._string in ('"', "'"):
            self._string = ""

    def _inside_string(self, line: str, position: int) -> int:
        if line[position] == "\\" and self._string[0] == '"':
            return position + 2
        if line.startswith(self._string, position):
            position += len(self._string)
            self._string = ""
            return position
        return position + 1

    def _outside(self, line: str, position: int) -> int:
        for quote in _STRINGS:
            if line.startswith(quote, position):
                self._string = quote
                return position + len(quote)
        character = line[position]
        if character == "#":
            return len(line)
        self._depth += (character in "[{") - (character in "]}")
        return position + 1
