"""The elements that reports are made of.  Everything that comes in is text; everything that goes out is safe HTML.

A foreign text cannot become markup (it is escaped), cannot turn the direction of what stands around it (it is isolated, and
direction controls are written as escapes), and cannot break the layout (a very long one loses its middle).
"""

from __future__ import annotations

import html
from collections.abc import Container, Iterable, Sequence

from reports.experiment_tables import TextTable
from reports.plain_text import ELLIPSIS, printable

LONGEST_TEXT = 1_000
LONGEST_NAME = 160


def text(words: str, longest: int = LONGEST_TEXT) -> str:
    """A sentence with foreign words in it, on one line."""
    return html.escape(_shortened(printable(words), longest))


def name(words: str) -> str:
    """A foreign name by itself."""
    return f"<bdi>{text(words, LONGEST_NAME)}</bdi>"


def heading(level: int, words: str) -> str:
    """``level``: 2 or more; the page's title is the only one of level 1."""
    return f"<h{level}>{text(words)}</h{level}>"


def paragraph(words: str, is_result: bool = False) -> str:
    """``is_result``: the sentence that the rest is the evidence for."""
    kind = ' class="result"' if is_result else ""
    return f"<p{kind}>{text(words)}</p>" if words else ""


def items(lines: Iterable[str]) -> str:
    """A list of sentences; "" for none."""
    entries = "".join(f"<li>{text(line)}</li>" for line in lines)
    return f"<ul>{entries}</ul>" if entries else ""


def notice(lines: Sequence[str]) -> str:
    """What must be read before anything else; "" for no lines."""
    if not lines:
        return ""
    return '<div class="notice" role="note">' + "".join(paragraph(line.strip()) for line in lines) + "</div>"


def code_block(lines: Sequence[str]) -> str:
    """Lines as they are; the block scrolls by itself and so can be reached by keyboard."""
    shown = "\n".join(html.escape(printable(line)) for line in lines)
    return f'<pre tabindex="0"><code>{shown}</code></pre>' if shown else ""


def details(summary: str, *parts: str) -> str:
    """A folded section; "" when all parts, which are HTML, are empty."""
    body = "".join(parts)
    return f"<details><summary>{text(summary)}</summary>{body}</details>" if body else ""


def table(caption: str, cells: TextTable, total_row: int = -1, decided_rows: Container[int] = ()) -> str:
    """A table in a box that scrolls by itself on narrow screens; the first column names the rows.  ``total_row``: the number
    of the row that sums the others up, -1 = none.  ``decided_rows``: of which the last cell is to be seen.  "" for a table
    without rows."""
    if not cells.rows:
        return ""
    title = text(caption)
    head = "".join(f'<th scope="col"{_side(cells, place)}>{text(words)}</th>' for place, words in enumerate(cells.headers))
    kinds = (
        " ".join(kind for kind, is_so in (("total", number == total_row), ("decided", number in decided_rows)) if is_so)
        for number in range(len(cells.rows))
    )
    rows = [_row(cells, row, kind) for row, kind in zip(cells.rows, kinds, strict=True)]
    return (
        f'<div class="scroll" role="region" aria-label="{title}" tabindex="0"><table><caption>{title}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _row(cells: TextTable, row: Sequence[str], kind: str) -> str:
    first, *rest = row
    marked = f' class="{kind}"' if kind else ""
    values = "".join(f"<td{_side(cells, place)}>{text(cell)}</td>" for place, cell in enumerate(rest, 1))
    return f'<tr{marked}><th scope="row">{name(first)}</th>{values}</tr>'


def _side(cells: TextTable, column: int) -> str:
    return "" if column in cells.text_columns else ' class="number"'


def _shortened(shown: str, longest: int) -> str:
    if len(shown) <= longest:
        return shown
    half = (longest - len(ELLIPSIS)) // 2
    return shown[:half] + ELLIPSIS + shown[-half:]
