r"""Names made safe to show: they come from foreign files and may hold anything.

A character that cannot be shown is written as an escape: ``\xNN`` for a byte that was not UTF-8 (kept by Python as a lone
surrogate) and for a control character, ``\uNNNN`` for any other.
"""

from __future__ import annotations

ELLIPSIS = "..."


def printable(text: str) -> str:
    """``text`` on one line, without control characters, direction overrides or lone surrogates."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _escaped(character) for character in text)


def valid_utf8(text: str) -> str:
    """``text`` with lone surrogates escaped, everything else kept: for formats that quote control characters themselves."""
    if text.isascii():
        return text
    return "".join(_escaped(character) if "\ud800" <= character <= "\udfff" else character for character in text)


def shorten_middle(text: str, width: int) -> str:
    """``text`` in at most ``width`` terminal cells; both ends of a long name stay, its middle becomes "..."."""
    from rich.cells import cell_len, chop_cells, set_cell_size

    if cell_len(text) <= width:
        return text
    if width <= len(ELLIPSIS) + 1:
        return set_cell_size(text, width)
    tail_cells = (width - len(ELLIPSIS)) // 2
    head = chop_cells(text, width - len(ELLIPSIS) - tail_cells)[0]
    tail = chop_cells(text[::-1], tail_cells)[0][::-1]
    return head + ELLIPSIS + tail


def shorten_path(path: str, width: int) -> str:
    """``path`` in at most ``width`` terminal cells: as many of its last components as fit, after ".../"."""
    from rich.cells import cell_len

    if cell_len(path) <= width:
        return path
    components = path.split("/")
    for place in range(1, len(components)):
        tail = "/".join((ELLIPSIS, *components[place:]))
        if cell_len(tail) <= width:
            return tail
    return shorten_middle(components[-1], width)


def _escaped(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
