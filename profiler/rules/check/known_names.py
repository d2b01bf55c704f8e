"""Functions as they stand in the binaries of the clients and in system libraries, to try rules on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from profiler.model.rule_finding import NamedPlace

_FILE = Path(__file__).with_name("known_names.txt")


def known_places(key_of_name: Callable[[str], tuple[str, str]]) -> tuple[NamedPlace, ...]:
    """``key_of_name``: canonical name and trait key ("" = none) of a function's name."""
    lines = _FILE.read_text(encoding="utf-8").splitlines()
    cells = (line.partition("\t") for line in lines if not line.startswith("#"))
    return tuple(NamedPlace(*key_of_name(name), dso=dso) for name, _, dso in cells)
