"""Tables for terminals of any width: columns are dropped by priority, and long names lose their middle."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from reports.plain_text import printable, shorten_middle

if TYPE_CHECKING:
    from rich.table import Table

KEEP_ALWAYS = 100
_GAP = 2
_NARROWEST_TEXT = 14
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
    ``is_text``: left aligned and shortened when there is no room.  ``is_word``: left aligned and, like numbers, never cut.
    ``styles``: a rich style per cell, "" for none; empty for a column without any."""

    header: str
    cells: tuple[str, ...]
    keep: int = KEEP_ALWAYS
    is_text: bool = False
    is_word: bool = False
    styles: tuple[str, ...] = ()


def render_table(columns: Sequence[Column], style: TerminalStyle) -> str:
    """Header and rows, each ending with a newline, without trailing blanks; at most ``style.width`` cells wide unless the
    columns that must stay are wider."""
    chosen = _without_empty(columns)
    widths = [_natural_width(column) for column in chosen]
    while _least_width(chosen, widths) > style.width and (victim := _first_to_drop(chosen)) is not None:
        del chosen[victim], widths[victim]
    _squeeze_texts(chosen, widths, style.width)
    return _print_rich(_rich_table(chosen, widths), sum(widths) + _GAP * len(widths), style)


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
    from rich.cells import cell_len

    return max([cell_len(column.header), *(cell_len(printable(cell)) for cell in column.cells)])


def _least_width(columns: Sequence[Column], widths: Sequence[int]) -> int:
    least = (min(width, _NARROWEST_TEXT) if column.is_text else width for column, width in zip(columns, widths, strict=True))
    return sum(least) + _GAP * (len(widths) - 1)


def _first_to_drop(columns: Sequence[Column]) -> int | None:
    droppable = [(column.keep, -place) for place, column in enumerate(columns) if column.keep < KEEP_ALWAYS]
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


def _rich_table(columns: Sequence[Column], widths: Sequence[int]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_edge=False, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for column, width in zip(columns, widths, strict=True):
        justify: Literal["left", "right"] = "left" if column.is_text or column.is_word else "right"
        table.add_column(
            Text(shorten_middle(column.header, width), justify=justify), width=width, no_wrap=True, justify=justify
        )
    for row in range(len(columns[0].cells)):
        table.add_row(
            *(
                Text(shorten_middle(printable(column.cells[row]), width), style=column.styles[row] if column.styles else "")
                for column, width in zip(columns, widths, strict=True)
            )
        )
    return table


def _print_rich(table: Table, width: int, style: TerminalStyle) -> str:
    from rich.console import Console

    target = io.StringIO()
    console = Console(
        file=target,
        width=width,
        force_terminal=style.color,
        color_system="standard" if style.color else None,
        no_color=not style.color,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
        _environ={},
    )
    console.print(table, crop=False)
    return "".join(f"{line.rstrip()}\n" for line in target.getvalue().splitlines())
