"""Where things stand in the text of a rule file: TOML values carry no line numbers, messages need them."""

from __future__ import annotations

import re

_RULE_HEADER = re.compile(r"\s*\[\[\s*(?:rule|\"rule\"|'rule')\s*\]\]")
_ANY_HEADER = re.compile(r"\s*\[")
_STRING_FENCES = ('"""', "'''")


def rule_lines(text: str) -> list[int]:
    """1-based numbers of the ``[[rule]]`` lines, in file order; lines inside multi-line strings do not count."""
    return [number for number, line in _lines_outside_strings(text) if _RULE_HEADER.match(line)]


def key_line(text: str, first_line: int, key: str) -> int:
    """Line of ``key = ...`` in the table whose header is at ``first_line`` (0: the top of the file); ``first_line``, at
    least 1, when it is not found."""
    assignment = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=")
    for number, line in _lines_outside_strings(text):
        if number <= first_line:
            continue
        if assignment.match(line):
            return number
        if _ANY_HEADER.match(line):
            break
    return max(first_line, 1)


def _lines_outside_strings(text: str) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        if not fence:
            found.append((number, line))
        rest = line
        while True:
            if fence:
                end = rest.find(fence)
                if end < 0:
                    break
                rest, fence = rest[end + 3 :], ""
            starts = [(rest.find(mark), mark) for mark in _STRING_FENCES if mark in rest]
            if not starts:
                break
            position, fence = min(starts)
            rest = rest[position + 3 :]
    return found
