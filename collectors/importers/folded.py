"""Folded stacks, one a line: "outermost;...;innermost weight", as flame graph tools write and read them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import BinaryIO

from collectors.importers.text_lines import first_lines, line_blocks
from collectors.importers.text_tables import SAMPLES, SampleText, TextFacts, TextFrame, TextTables
from profiler.errors import FormatError
from profiler.model.capture import Capture
from profiler.model.event import Event
from profiler.model.run import CaptureInfo
from profiler.model.sample_table import StackState

_WEIGHT = re.compile(r"(?P<whole>\d{1,18})(?:\.(?P<fraction>\d{0,100}))?")
_ANOTHER_WEIGHT = re.compile(r"\s\d+(\.\d*)?$")
# What flame graph tools append to a frame: kernel, generated code, inlined, tail-called.
_ANNOTATION = re.compile(r"_\[([kjiw])\]$")
_DSO_OF_ANNOTATION = {"k": "[kernel.kallsyms]", "j": "//anon"}
_MOST_DIGITS = 9
_EVENT_NAME = "folded"
_SNIFFED_SHARE = 0.8


def is_folded(head: bytes) -> bool:
    """Whether a file that begins with ``head`` (some thousand bytes) holds folded stacks."""
    lines = [line for line in first_lines(head)[:-1] or first_lines(head) if _is_stack_line(line)]
    readable = [line for line in lines if _split(line) is not None]
    return any(";" in line for line in readable) and len(readable) >= _SNIFFED_SHARE * len(lines)


def read_folded(stream: BinaryIO, name: str, info: CaptureInfo) -> Capture:
    """The capture of folded stacks: one sample for each distinct stack, with the sum of its weights.

    Weights with fractions are kept exactly, as whole numbers of a unit that says its size.  There are neither times nor
    threads.  ``FormatError`` when no line is a folded stack, fractions are too long to be kept, or every line has two weights.
    """
    text = _Reader()
    for lines in line_blocks(stream):
        for line in lines:
            if _is_stack_line(line):
                text.line(line)
    return text.capture(name, info)


def _split(line: str) -> tuple[str, re.Match[str]] | None:
    """(stack, weight) of a line, ``None`` when it does not end with a weight."""
    parts = line.rsplit(None, 1)
    weight = _WEIGHT.fullmatch(parts[1]) if len(parts) == 2 else None
    return (parts[0].strip(), weight) if weight is not None else None


def _is_stack_line(line: str) -> bool:
    return bool(line) and not line.isspace() and not line.startswith("# ") and line.rstrip() != "#"


@dataclass(slots=True)
class _Reader:
    """``totals``: by row of the stack table and number of decimals, the sum of weights without their point.
    ``with_two_weights``: lines as differential flame graphs have them, ``with_one_weight``: the other readable ones."""

    tables: TextTables = field(default_factory=TextTables)
    totals: dict[int, dict[int, int]] = field(default_factory=dict)
    unreadable: int = 0
    first_unreadable: str = ""
    most_digits: int = 0
    with_two_weights: int = 0
    with_one_weight: int = 0

    def line(self, line: str) -> None:
        parts = _split(line)
        if parts is None:
            self.unreadable += 1
            self.first_unreadable = self.first_unreadable or line.strip()
            return
        stack, weight = parts
        has_two = _ANOTHER_WEIGHT.search(stack) is not None
        self.with_two_weights += has_two
        self.with_one_weight += not has_two
        fraction = (weight["fraction"] or "").rstrip("0")
        self.most_digits = max(self.most_digits, len(fraction))
        frames = [self.tables.frame(_frame(part)) for part in stack.split(";") if part.strip()]
        if frames:
            by_digits = self.totals.setdefault(self.tables.stack(frames), {})
            by_digits[len(fraction)] = by_digits.get(len(fraction), 0) + int(weight["whole"] + fraction)

    def capture(self, name: str, info: CaptureInfo) -> Capture:
        if not self.totals:
            raise FormatError(name, 'no line is a folded stack ("outermost;...;innermost weight")')
        if self.with_two_weights > 1 and not self.with_one_weight:
            raise FormatError(name, "two weights on every line, of two profiles: keep one of them")
        if self.most_digits > _MOST_DIGITS:
            raise FormatError(name, f"weights with {self.most_digits} decimals, {_MOST_DIGITS} can be kept: round them")
        thread = self.tables.thread(-1, -1, "")
        for stack, by_digits in self.totals.items():
            weight = sum(value * 10 ** (self.most_digits - digits) for digits, value in by_digits.items())
            if weight >= 2**62:
                raise FormatError(name, "the weights are too large for any sum: the text is damaged")
            self.tables.add(SampleText(0, thread, -1, 0, stack, weight, StackState.ROOTLESS))
        unit = f"1/{10**self.most_digits} {SAMPLES}" if self.most_digits else f"folded {SAMPLES}"
        event = Event(_EVENT_NAME, unit, 0, 0)
        return self.tables.capture(name, TextFacts(replace(info), (event,), self._notes(), has_whole_stacks=False))

    def _notes(self) -> tuple[str, ...]:
        notes: Sequence[str] = ["folded stacks have no times and no threads; each distinct stack counts as one sample"]
        if self.unreadable:
            lines = "1 line" if self.unreadable == 1 else f"{self.unreadable} lines"
            notes = [*notes, f"{lines} could not be read as folded stacks, the first: {self.first_unreadable[:60]!r}"]
        return tuple(notes)


def _frame(text: str) -> TextFrame:
    annotation = _ANNOTATION.search(text)
    dso = _DSO_OF_ANNOTATION.get(annotation[1], "") if annotation else ""
    name = text[: annotation.start()] if annotation else text
    return TextFrame(dso, 0, "" if name == "[unknown]" else name, is_return_address=False)
