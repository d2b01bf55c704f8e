"""One table of a file that people write, read key by key with the types that are expected; every error names file and line."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import NoReturn, TypeVar

from profiler.errors import UsageError
from profiler.model.quick_dataclass import dataclass
from profiler.toml.toml_positions import TomlPositions

Choice = TypeVar("Choice", bound=StrEnum)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B")
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_ADDRESS = re.compile(r"https?://[^/\s]+(/\S*)?")


@dataclass(frozen=True, slots=True)
class TomlSource:
    """The file that is being read."""

    path: Path
    positions: TomlPositions

    def fail(self, message: str, table: str, number: int = 0, key: str = "") -> NoReturn:
        raise UsageError(f"{self.path}:{self.positions.line_of(table, number, key)}: {message}")


@dataclass(frozen=True, slots=True)
class TomlTable:
    """``name``: of the top-level table, ``number``: which of the array's.  ``key``: the key in it that holds this table, ""
    for the table itself.  Every read remembers its key; ``finish`` refuses the others."""

    source: TomlSource
    name: str
    number: int
    values: Mapping[str, object]
    key: str = ""
    _known: set[str] = field(default_factory=set)

    def fail(self, message: str, key: str = "") -> NoReturn:
        self.source.fail(f"{self._where(key)}: {message}", self.name, self.number, (self.key or key).partition(".")[0])

    def _where(self, key: str) -> str:
        return ".".join(part for part in (self.name, self.key, key) if part)

    def has(self, key: str) -> bool:
        self._known.add(key)
        return key in self.values

    def text(self, key: str, default: str | None = None) -> str:
        """A string without zero bytes; ``default`` None: the key is needed, and not empty."""
        if not self.has(key):
            if default is None:
                self.fail("is missing", key)
            return default
        value = self.values[key]
        if not isinstance(value, str) or (default is None and not value):
            self.fail(f"expected text in quotes, not {_shown(value)}", key)
        if "\0" in value:
            self.fail(f"{_shown(value)}: a zero byte can be in no name", key)
        return value

    def flag(self, key: str, default: bool = False) -> bool:
        if not self.has(key):
            return default
        value = self.values[key]
        if not isinstance(value, bool):
            self.fail(f"expected true or false, not {_shown(value)}", key)
        return value

    def number_of(self, key: str, default: float, least: float = 0.0) -> float:
        if not self.has(key):
            return default
        value = self.values[key]
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= least or value == float("inf"):
            self.fail(f"expected a number of at least {least:g}, not {_shown(value)}", key)
        return float(value)

    def count(self, key: str, default: int, least: int = 0, most: int = 1 << 62) -> int:
        if not self.has(key):
            return default
        value = self.values[key]
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            limits = f"at least {least}" if most == 1 << 62 else f"from {least} to {most}"
            self.fail(f"expected a whole number {limits}, not {_shown(value)}", key)
        return value

    def seconds(self, key: str, default: float) -> float:
        """A number of seconds, or text such as "90 s", "5 min"."""
        if not self.has(key):
            return default
        value = self.values[key]
        if isinstance(value, str) and (match := _DURATION.fullmatch(value.strip())):
            return float(match[1]) * _SECONDS[match[2]]
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0 or value == float("inf"):
            self.fail(f'expected seconds or text such as "90 s" or "5 min", not {_shown(value)}', key)
        return float(value)

    def byte_count(self, key: str, default: int, least: int = 0) -> int:
        """A number of bytes, or text such as "2 GiB", "500 MB"."""
        if not self.has(key):
            return default
        value = self.values[key]
        if isinstance(value, str) and (match := _SIZE.fullmatch(value.strip())):
            value = round(float(match[1]) * (1024 if match[3] else 1000) ** _POWERS[match[2]])
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 1 << 62:
            self.fail(f'expected bytes or text such as "2 GiB", at least {least} bytes, not {_shown(self.values[key])}', key)
        return value

    def regex(self, key: str, default: str | None = None) -> str:
        text = self.text(key, default)
        try:
            re.compile(text)
        except re.error as error:
            self.fail(f"not a regular expression ({error})", key)
        return text

    def address(self, key: str) -> str:
        """Of a page, "" when there is none."""
        text = self.text(key, "")
        if text and not _ADDRESS.fullmatch(text):
            self.fail(f"{text!r}: expected an address such as http://127.0.0.1:9090/metrics", key)
        return text

    def words(self, key: str, needed: bool = False) -> tuple[str, ...]:
        """An argument list: an array of strings.  No shell takes part, so text is not split."""
        if not self.has(key):
            if needed:
                self.fail("is missing", key)
            return ()
        value = self.values[key]
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value) or (needed and not value):
            self.fail(f'expected a list of arguments such as ["program", "--option"], not {_shown(value)}', key)
        if any("\0" in word for word in value):
            self.fail("an argument holds a zero byte", key)
        return tuple(value)

    def pairs(self, key: str) -> tuple[tuple[str, str], ...]:
        """Environment variables: a table of strings."""
        if not self.has(key):
            return ()
        value = self.values[key]
        if not isinstance(value, dict):
            self.fail(f'expected a table such as {{ NAME = "value" }}, not {_shown(value)}', key)
        for name, text in value.items():
            if not isinstance(text, str) or not name or "=" in name or "\0" in name + text:
                self.fail(f"{name}: expected text in quotes, not {_shown(text)}", key)
        return tuple(value.items())

    def choice(self, key: str, kind: type[Choice], default: Choice) -> Choice:
        text = self.text(key, default.value)
        try:
            return kind(text)
        except ValueError:
            self.fail(f"{text!r} is none of {', '.join(kind)}", key)

    def table(self, key: str, needed: bool = False) -> TomlTable | None:
        """An inner table."""
        if not self.has(key):
            if needed:
                self.fail("is missing", key)
            return None
        value = self.values[key]
        if not isinstance(value, dict):
            self.fail(f"expected a table, not {_shown(value)}", key)
        inner = f"{self.key}.{key}" if self.key else key
        return TomlTable(self.source, self.name, self.number, value, inner)

    def finish(self) -> None:
        """Refuses keys that nobody asked for."""
        for key in self.values:
            if key not in self._known:
                self.fail(f"unknown key{nearest_key(key, sorted(self._known))}", key)


def nearest_key(word: str, known: Sequence[str]) -> str:
    """What may have been meant, as the end of a message."""
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    if near:
        return f"; did you mean {near[0]}?"
    return f"; there are: {', '.join(known)}" if len(known) <= 30 else ""


def nearest_name(word: str, known: Sequence[str]) -> str:
    """What may have been meant by a name of the plan's own, or what there is, as the end of a message."""
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.4)
    if near:
        return f"; did you mean {near[0]}?"
    return f"; there are: {', '.join(known)}" if known else ""


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
