"""Folded stacks."""

from __future__ import annotations

import io
from collections import Counter

import pytest

from collectors.importers.folded import is_folded, read_folded
from profiler.errors import FormatError
from profiler.model.capture import Capture
from profiler.model.run import CaptureInfo, RunIdentity, RunMode

INFO = CaptureInfo(RunIdentity("file", "x", 0, RunMode.IMPORTED))


def read(text: str | bytes) -> Capture:
    return read_folded(io.BytesIO(text.encode() if isinstance(text, str) else text), "text", INFO)


def stacks(capture: Capture) -> Counter[tuple[str, ...]]:
    found: Counter[tuple[str, ...]] = Counter()
    for stack, weight in zip(capture.samples.stack.tolist(), capture.samples.weight.tolist(), strict=True):
        symbols = capture.frames.symbol[capture.stacks.frames_leaf_first(stack)].tolist()
        found[tuple(capture.strings[symbol] if symbol >= 0 else "?" for symbol in reversed(symbols))] += weight
    return found


TEXT = "main;operator new(unsigned long);f 12\nmain;Ljava/io/X:::a b 3 5\nmain 1\n"
EXPECTED = {("main", "operator new(unsigned long)", "f"): 12, ("main", "Ljava/io/X:::a b 3"): 5, ("main",): 1}


@pytest.mark.parametrize("text", [TEXT, TEXT.replace("\n", "\r\n"), "# a comment\n\n" + TEXT + "#\n", TEXT.rstrip("\n")])
def test_stacks_and_weights(text: str) -> None:
    assert is_folded(text.encode())
    capture = read(text)
    assert stacks(capture) == EXPECTED
    assert [event.unit for event in capture.events] == ["folded samples"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_encodings(encoding: str) -> None:
    assert is_folded(TEXT.encode(encoding))
    assert stacks(read(TEXT.encode(encoding))) == EXPECTED


def test_files_that_were_joined_are_summed() -> None:
    assert stacks(read(TEXT * 3)) == {stack: 3 * weight for stack, weight in EXPECTED.items()}


def test_fractions_are_kept_exactly() -> None:
    capture = read("a;b 0.1\na;b 0.20\na 3\na;c 1.125\n")
    assert stacks(capture) == {("a", "b"): 300, ("a",): 3000, ("a", "c"): 1125}
    assert [event.unit for event in capture.events] == ["1/1000 samples"]


def test_annotations_of_flame_graph_tools() -> None:
    capture = read("a;sys_read_[k] 1\na;Foo::run_[j] 2\na;small_[i] 3\n")
    assert stacks(capture) == {("a", "sys_read"): 1, ("a", "Foo::run"): 2, ("a", "small"): 3}
    assert [dso.path for dso in capture.dsos] == ["[unknown]", "[kernel]", "//anon"]


def test_lines_that_cannot_be_read_are_counted() -> None:
    capture = read("a;b 1\nno weight\na;b x\na;b -3\n")
    assert stacks(capture) == {("a", "b"): 1}
    assert capture.quality.notes[1:] == ("3 lines could not be read as folded stacks, the first: 'no weight'",)


@pytest.mark.parametrize("text", ["", "hello\n", "a b c\n\n"])
def test_other_text_is_refused(text: str) -> None:
    assert not is_folded(text.encode())
    with pytest.raises(FormatError, match="no line is a folded stack"):
        read(text)


def test_weights_too_large_or_too_fine_are_refused() -> None:
    with pytest.raises(FormatError, match="too large"):
        read("a;b 999999999999999999\n" * 5)
    for digits in (10, 19, 40):
        with pytest.raises(FormatError, match=f"{digits} decimals"):
            read(f"a;c 1\na;b 0.{'1' * digits}\n")


def test_differences_of_two_profiles_are_refused() -> None:
    with pytest.raises(FormatError, match="two weights on every line"):
        read("a;b 6 4\na;c 0 12\na;d 1.5 2\n")
