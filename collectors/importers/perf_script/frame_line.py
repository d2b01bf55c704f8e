"""One line of a printed call stack: "address symbol+0xoffset (dso)", and the source line that may follow it."""

from __future__ import annotations

import re
from typing import NamedTuple

_UNKNOWN = "[unknown]"
_INLINED = "inlined"
_FRAME = re.compile(r"^\s*(?:0x)?([0-9a-fA-F]{1,16})(?:\s+(\S.*)|\s*)$")
_SYMBOL_OFFSET = re.compile(r"\+0x[0-9a-f]+$")
_SOURCE = re.compile(r"^\s+\S.*(?::(?:\d+|\?)(?: \(discriminator \d+\))?|\[[0-9a-f]+\])(?P<inlined> \(inlined\))?\s*$")
# The place of a sample without a call stack, behind other fields: perf aligns its address to sixteen columns.
_ALIGNED_ADDRESS = re.compile(r"(?<!\S) {0,15}([0-9a-f]{1,16})(?= {1,8}\S)")
_ADDRESS_COLUMNS = 16


class FrameText(NamedTuple):
    """``address`` -1 = not printed; ``symbol`` and ``dso`` "" = unknown or not printed.  ``is_inlined``: the function's code
    lies in that of the next frame further out."""

    address: int
    symbol: str
    dso: str
    is_inlined: bool


class SourceLine(NamedTuple):
    """Belongs to the frame above.  ``is_inlined``: that frame is an inlined one."""

    is_inlined: bool


def parse_frame(line: str) -> FrameText | SourceLine | None:
    """What a line of a call stack says, ``None`` when it cannot be read."""
    match = _FRAME.match(line)
    if match:
        return _frame(int(match[1], 16), (match[2] or "").rstrip())
    source = _SOURCE.match(line)
    if source:
        return SourceLine(source["inlined"] is not None)
    place = line.strip()
    is_named = line[:1].isspace() and bool(split_dso(place)[1]) and bool(split_dso(place)[0])
    return _frame(-1, place) if is_named else None


def parse_place(rest: str) -> FrameText | None:
    """The place of a sample whose header line holds it, behind whatever else was printed."""
    text = rest.rstrip()
    match = _FRAME.match(text)
    if match and match[2]:
        return _frame(int(match[1], 16), match[2])
    place, dso = split_dso(text)
    aligned = [found for found in _ALIGNED_ADDRESS.finditer(place) if len(found[0]) >= _ADDRESS_COLUMNS]
    if not aligned or not dso:
        return None
    return _frame(int(aligned[-1][1], 16), f"{place[aligned[-1].end() :].strip()} ({dso})")


def split_dso(text: str) -> tuple[str, str]:
    """(what stands before, content of the last balanced parentheses) of a text that ends with them; a blank stands before
    them, so a parameter list is not taken for a file."""
    if not text.endswith(")"):
        return text, ""
    depth = 0
    for position in range(len(text) - 1, -1, -1):
        if text[position] == ")":
            depth += 1
        elif text[position] == "(":
            depth -= 1
            if depth == 0:
                break
    is_found = depth == 0 and (position == 0 or text[position - 1].isspace())
    start = position if is_found else (text.rfind(" (") + 1 if depth else -1)
    return (text[:start].rstrip(), text[start + 1 : -1]) if start >= 0 and text[start] == "(" else (text, "")


def _frame(address: int, text: str) -> FrameText:
    place, dso = split_dso(text)
    symbol = _SYMBOL_OFFSET.sub("", place)
    is_inlined = dso == _INLINED
    return FrameText(address, "" if symbol == _UNKNOWN else symbol, "" if is_inlined else dso, is_inlined)
