"""Tables for terminals of any width: columns are dropped by priority, and long names lose their middle."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from profiler.model.quick_dataclass import dataclass
from reports.plain_text import printable, shorten_middle, shorten_path

KEEP_ALWAYS = 100
PATH_DIMENSIONS = ("file", "line")
_GAP = 2
_NARROWEST_TEXT = 14
_READABLE_TEXT = 32
_GLUE = "\ue000"  # for private use, so never in printable text
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:%|ns|µs|ms|s|runs?|samples)(?!\w))")


@dataclass(frozen=True, slots=True)
class TerminalStyle:
    """``width`` in cells; without ``color`` the output holds no escape codes."""

    width: int = 100
    color: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """``cells``: one per row.  ``keep``: the column with the lowest number is dropped first, ``KEEP_ALWAYS`` never.
    ``is_text``: left aligned and shortened when there is no room, with ``is_path`` from its start; ``short_cells``, when given,
    are tried first.  ``is_extra``: goes before texts become hard to read.  ``is_word``: left aligned and, like numbers, never
    cut.
    ``styles``: a rich style per cell, "" for none; empty for a column without any."""

    header: str
    cells: tuple[str, ...]
    keep: int = KEEP_ALWAYS
    is_text: bool = False
    is_word: bool = False
    is_path: bool = False
    is_extra: bool = False
    styles: tuple[str, ...] = ()
    short_cells: tuple[str, ...] = ()


def render_table(columns: Sequence[Column], style: TerminalStyle) -> str:
    """Header and rows, each ending with a newline, without trailing blanks; at most ``style.width`` cells wide unless the
    columns that must stay are wider."""
    chosen = _without_empty(columns)
    widths = [_natural_width(column) for column in chosen]
    for narrowest, only_extra in ((_READABLE_TEXT, True), (_NARROWEST_TEXT, False)):
        while _least_width(chosen, widths, narrowest) > style.width:
            if (victim := _first_to_drop(chosen, only_extra)) is None:
                break
            del chosen[victim], widths[victim]
    _squeeze_texts(chosen, widths, style.width)
    lines = [_line([column.header for column in chosen], ["bold" if style.color else ""] * len(chosen), chosen, widths)]
    for row in range(len(columns[0].cells)):
        styles = [column.styles[row] if column.styles and style.color else "" for column in chosen]
        cells = [_fitting(column, row, width) for column, width in zip(chosen, widths, strict=True)]
        lines.append(_line(cells, styles, chosen, widths))
    return "".join(lines)


def wrap(text: str, style: TerminalStyle, indent: str = "") -> str:
    """One paragraph, wrapped at blanks but not between a number and its unit; following lines are indented by two more."""
    filled = textwrap.fill(
        _BEFORE_UNIT.sub(_GLUE, printable(text)),
        max(20, style.width),
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return filled.replace(_GLUE, " ")


def _without_empty(columns: Sequence[Column]) -> list[Column]:
    return [column for column in columns if column.keep == KEEP_ALWAYS or any(column.cells)]


def _natural_width(column: Column) -> int:
    return max([_cell_count(column.header), *(_cell_count(printable(cell)) for cell in column.cells)])


def _least_width(columns: Sequence[Column], widths: Sequence[int], narrowest: int) -> int:
    least = (min(width, narrowest) if column.is_text else width for column, width in zip(columns, widths, strict=True))
    return sum(least) + _GAP * (len(widths) - 1)


def _first_to_drop(columns: Sequence[Column], only_extra: bool) -> int | None:
    droppable = [
        (column.keep, -place)
        for place, column in enumerate(columns)
        if column.keep < KEEP_ALWAYS and (column.is_extra or not only_extra)
    ]
    return -min(droppable)[1] if droppable else None


def _squeeze_texts(columns: Sequence[Column], widths: list[int], width: int) -> None:
    """Shrinks the widest text column until the line fits or every text is at its narrowest."""
    texts = [place for place, column in enumerate(columns) if column.is_text]
    excess = sum(widths) + _GAP * (len(widths) - 1) - width
    while excess > 0 and texts:
        place = max(texts, key=lambda text: widths[text])
        if widths[place] <= _NARROWEST_TEXT:
            return
        widths[place] -= 1
        excess -= 1


def _fitting(column: Column, row: int, width: int) -> str:
    cell = printable(column.cells[row])
    if _cell_count(cell) > width and column.short_cells:
        cell = printable(column.short_cells[row])
    return shorten_path(cell, width) if column.is_path else shorten_middle(cell, width)


def _line(cells: Sequence[str], styles: Sequence[str], columns: Sequence[Column], widths: Sequence[int]) -> str:
    """One row of the table; a cell whose style is not "" is written in that style."""
    padded = []
    for cell, style, column, width in zip(cells, styles, columns, widths, strict=True):
        text = shorten_middle(cell, width)
        gap = " " * (width - _cell_count(text))
        styled = _styled(text, style) if style else text
        padded.append(styled + gap if column.is_text or column.is_word else gap + styled)
    return (" " * _GAP).join(padded).rstrip() + "\n"


def _styled(text: str, style: str) -> str:
    from rich.color import ColorSystem
    from rich.style import Style

    return Style.parse(style).render(text, color_system=ColorSystem.STANDARD)


def _cell_count(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)
