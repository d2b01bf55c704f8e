"""Tables for terminals of any width: columns are dropped by priority or go on below, and long names lose their middle."""

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
    are tried first.  ``is_extra``: goes before texts become hard to read.  ``goes_below``: is not dropped, but stands in
    another block of the table, together with those of the same ``keep``; ``is_repeated``: stands in every block, as the first
    column does.  ``is_word``: left aligned and, like numbers, never cut.
    ``styles``: a rich style per cell, "" for none; empty for a column without any."""

    header: str
    cells: tuple[str, ...]
    keep: int = KEEP_ALWAYS
    is_text: bool = False
    is_word: bool = False
    is_path: bool = False
    is_extra: bool = False
    goes_below: bool = False
    is_repeated: bool = False
    styles: tuple[str, ...] = ()
    short_cells: tuple[str, ...] = ()


def render_table(columns: Sequence[Column], style: TerminalStyle) -> str:
    """Header and rows, each ending with a newline, without trailing blanks; at most ``style.width`` cells wide unless the
    columns that must stay are wider.  Blocks are parted by an empty line."""
    places = [place for place, column in enumerate(columns) if column.keep == KEEP_ALWAYS or any(column.cells)]
    blocks: list[str] = []
    left = set(places)
    while left:
        asked = [place for place in places if place in left or place == 0 or columns[place].is_repeated]
        shown = _fitting_places(columns, asked, style.width, is_first=not blocks)
        left = {place for place in asked if _may_go_below(columns[place])} - set(shown)
        if left:  # now there is room for others
            shown = _fitting_places(columns, [place for place in asked if place not in left], style.width, is_first=not blocks)
            left = {place for place in asked if _may_go_below(columns[place])} - set(shown)
        blocks.append(_block([columns[place] for place in shown], style))
    return "\n".join(blocks)


def _fitting_places(columns: Sequence[Column], places: Sequence[int], width: int, is_first: bool) -> list[int]:
    """Of those columns, the ones that there is room for.  A block that is not the first keeps one that it is there for."""
    chosen = list(places)
    for narrowest, only_extra in ((_READABLE_TEXT, True), (_NARROWEST_TEXT, False)):
        while _least_width([columns[place] for place in chosen], narrowest) > width:
            victims = _first_to_drop(columns, chosen, only_extra)
            remaining = [place for place in chosen if place not in victims]
            if not victims or not (is_first or any(_may_go_below(columns[place]) for place in remaining)):
                break
            chosen = remaining
    return chosen


def _may_go_below(column: Column) -> bool:
    return column.goes_below and column.keep < KEEP_ALWAYS


def _block(chosen: Sequence[Column], style: TerminalStyle) -> str:
    widths = [_natural_width(column) for column in chosen]
    _squeeze_texts(chosen, widths, style.width)
    lines = [_line([column.header for column in chosen], ["bold" if style.color else ""] * len(chosen), chosen, widths)]
    for row in range(len(chosen[0].cells)):
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


def _natural_width(column: Column) -> int:
    return max([_cell_count(column.header), *(_cell_count(printable(cell)) for cell in column.cells)])


def _least_width(columns: Sequence[Column], narrowest: int) -> int:
    widths = [(_natural_width(column), column.is_text) for column in columns]
    return sum(min(width, narrowest) if is_text else width for width, is_text in widths) + _GAP * (len(widths) - 1)


def _first_to_drop(columns: Sequence[Column], places: Sequence[int], only_extra: bool) -> list[int]:
    """The last of those with the lowest ``keep``; all of these when they go on below."""
    droppable = [
        (columns[place].keep, -place)
        for place in places
        if columns[place].keep < KEEP_ALWAYS and (columns[place].is_extra or not only_extra)
    ]
    if not droppable:
        return []
    lowest, place = min(droppable)
    if not columns[-place].goes_below:
        return [-place]
    return [-other for keep, other in droppable if keep == lowest]


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
