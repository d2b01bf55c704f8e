"""Streams of any encoding take any text."""

from __future__ import annotations

import io
import sys

import pytest

from profiler.cli.streams import accept_any_text, open_missing_streams, silence


@pytest.mark.parametrize(
    ("encoding", "text", "written"),
    [
        ("ascii", "12.5 µs ±3", b"12.5 us +-3"),
        ("ascii", "größe µ", b"gr\\xf6\\xdfe u"),
        ("ascii", "µµ木", b"uu\\u6728"),
        ("utf-8", "12.5 µs ±3 木", "12.5 µs ±3 木".encode()),
        ("utf-8", "x\udcff", b"x\\udcff"),
        ("latin-1", "±3 木", b"\xb13 \\u6728"),
    ],
)
def test_what_an_encoding_does_not_know(encoding: str, text: str, written: bytes) -> None:
    target = io.BytesIO()
    stream = io.TextIOWrapper(target, encoding=encoding, newline="\n")
    accept_any_text(stream)
    stream.write(text)
    stream.flush()
    assert target.getvalue() == written


def test_streams_without_a_descriptor_are_left_alone() -> None:
    stream = io.StringIO()
    accept_any_text(stream)
    silence(stream)
    stream.write("still here")
    assert stream.getvalue() == "still here"


def test_a_stream_that_was_closed_before_the_start_takes_text_and_drops_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", None)
    open_missing_streams()
    assert sys.stdout.write("a report\n") == 9
    sys.stdout.close()
