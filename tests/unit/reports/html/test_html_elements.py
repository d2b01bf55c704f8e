"""The one place in which reports become HTML: whatever text comes in, text it stays."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.experiment_tables import TextTable
from reports.html import elements


class Seen(HTMLParser):
    """What a browser would make of a piece: elements with their attributes, and the text between them."""

    def __init__(self, piece: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self.feed(piece)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


HOSTILE = ("<script>alert(1)</script>", "\"' onload='x", "a & b &lt;", "]]>-->", "{{ 7*7 }}")


@pytest.mark.parametrize("text", HOSTILE)
def test_markup_stays_text(text: str) -> None:
    assert Seen(elements.paragraph(text)).texts == [text]
    assert Seen(elements.name(text)).elements == ["bdi"]
    assert Seen(elements.items([text])).elements == ["ul", "li"]
    assert Seen(elements.details(text, elements.paragraph(text))).texts == [text, text]
    assert Seen(elements.code_block([text, text])).texts == [f"{text}\n{text}"]
    assert Seen(elements.notice([text])).elements == ["div", "p"]


def test_a_table_names_its_rows_columns_and_itself() -> None:
    cells = TextTable(("function", "ms", "verdict"), (("f<T>", "1.5", "faster"), ("total", "1.5", "faster")), frozenset({0, 2}))
    seen = Seen(elements.table('all "calls"', cells, total_row=1, decided_rows={0}))
    assert seen.elements == [
        "div",
        "table",
        "caption",
        "thead",
        "tr",
        *["th"] * 3,
        "tbody",
        *["tr", "th", "bdi", "td", "td"] * 2,
    ]
    assert seen.texts == ['all "calls"', "function", "ms", "verdict", "f<T>", "1.5", "faster", "total", "1.5", "faster"]
    assert seen.attributes.count(("scope", "col")) == 3
    assert seen.attributes.count(("scope", "row")) == 2
    assert ("aria-label", 'all "calls"') in seen.attributes
    assert [value for name, value in seen.attributes if name == "class"] == [
        "scroll",
        "number",
        "decided",
        "number",
        "total",
        "number",
    ]
    # Who uses the keyboard can scroll it.
    assert ("tabindex", "0") in seen.attributes


def test_nothing_makes_nothing() -> None:
    empty = TextTable(("a",), ())
    assert [elements.table("x", empty), elements.items([]), elements.notice([]), elements.code_block([])] == [""] * 4
    assert elements.details("summary", "", "") == elements.paragraph("") == ""


def test_long_texts_lose_their_middle() -> None:
    (shown,) = Seen(elements.name("a" * 6_000 + "b" * 4_000)).texts
    assert len(shown) <= 160
    assert (shown[:70], shown[-70:]) == ("a" * 70, "b" * 70)
    assert len(elements.text("<" * 10_000)) <= 4 * 1_000


def test_what_cannot_be_shown_is_written_as_an_escape() -> None:
    assert elements.text("a\x00\x1b\u202e\udcffb\n") == "a\\x00\\x1b\\u202e\\xffb\\x0a"


@given(st.text(st.characters(), max_size=50))
def test_every_text_stays_text_in_utf_8(text: str) -> None:
    cells = TextTable((text, text), ((text, text),))
    piece = elements.table(text, cells) + elements.name(text) + elements.code_block([text])
    piece.encode("utf-8")
    assert set(Seen(piece).elements) <= {"div", "table", "caption", "thead", "tbody", "tr", "th", "td", "bdi", "pre", "code"}
    # Attributes are ours alone.
    assert {name for name, _ in Seen(piece).attributes} <= {"class", "role", "aria-label", "tabindex", "scope"}
