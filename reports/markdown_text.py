"""Pieces of GitHub-flavoured Markdown that hold foreign names safely."""

from __future__ import annotations

import re
from collections.abc import Sequence

from reports.plain_text import ELLIPSIS, printable

MAX_CHARACTERS = 60_000
LEFT_OUT = "_Left out here for length: see the CSV or JSON output._"

_MAX_NAME = 160
_PLAIN = re.compile(r"[A-Za-z0-9 .,/()+%±-]*\Z")
# Written as numeric references, none of these can start markup, end a table cell or close an element.
_SPECIAL = re.compile(r"""[&<>"'|`*_~\[\]\\#@$:!{}^=]""")


def name(text: str) -> str:
    """A name as plain text where it is harmless; otherwise in a ``code`` element, in which no site looks for mentions."""
    shown = _shortened(printable(text))
    if _PLAIN.match(shown):
        return shown
    return f"<code>{_SPECIAL.sub(lambda found: f'&#{ord(found[0])};', shown)}</code>"


def text(words: str) -> str:
    """A sentence with foreign words in it, shown literally; an empty comment keeps "@name" and "#1" from becoming links."""
    escaped = re.sub(r"[&<>]", lambda found: f"&#{ord(found[0])};", printable(words))
    escaped = re.sub(r"[|`*_~\[\]\\$]", r"\\\g<0>", escaped)
    return re.sub(r"(?<!&)([@#])(?=\w)", r"\1<!-- -->", escaped)


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], text_columns: frozenset[int]) -> str:
    """Cells must be safe already; columns whose number is not in ``text_columns`` are right aligned."""
    marks = [":--" if place in text_columns else "--:" for place in range(len(headers))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (headers, marks, *rows))


def code_block(lines: Sequence[str]) -> str:
    """A fence longer than any run of backticks inside."""
    shown = [printable(line) for line in lines]
    longest = max((len(run) for line in shown for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join((fence, *shown, fence))


def details(summary: str, body: str) -> str:
    """A folded section."""
    return f"<details><summary>{text(summary)}</summary>\n\n{body}\n\n</details>"


def fitting(blocks: Sequence[str], limit: int) -> list[str]:
    """The first blocks that fit together in ``limit`` characters, each followed by an empty line; says when some do not."""
    kept: list[str] = []
    room = limit - len(LEFT_OUT) - 2
    for block in blocks:
        room -= len(block) + 2
        if room < 0:
            return [*kept, LEFT_OUT]
        kept.append(block)
    return kept


def _shortened(shown: str) -> str:
    if len(shown) <= _MAX_NAME:
        return shown
    half = (_MAX_NAME - len(ELLIPSIS)) // 2
    return shown[:half] + ELLIPSIS + shown[-half:]
