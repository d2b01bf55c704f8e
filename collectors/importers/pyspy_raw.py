"""py-spy's raw text (`py-spy record --format raw`): folded stacks whose frames name a file and a line.

Nothing in it is escaped.  A semicolon in a thread's name is put back as well as can be; in py-spy's speedscope files every
name is whole.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

from collectors.importers.pyspy_tables import PySpyFrame, PySpyTables, PySpyThread, with_label
from collectors.importers.text_lines import first_lines, line_blocks
from profiler.errors import FormatError
from profiler.model.capture import Capture
from profiler.model.run import CaptureInfo

_COUNT = re.compile(r"\d{1,18}")
_LINE_NUMBER = re.compile(r"\d{1,9}")
_LABEL = re.compile(r'process \d+:"|thread \((?:0x[0-9A-Fa-f]+|\d+)\)')
_SNIFFED_SHARE = 0.8


def is_pyspy_raw(head: bytes) -> bool:
    """Whether a file that begins with ``head`` holds py-spy's raw text: nearly every stack has a Python source line or says
    which of py-spy's threads it is of."""
    lines = [line for line in first_lines(head)[:-1] or first_lines(head) if line.strip()]
    found = [line for line in lines if (parts := _split(line)) is not None and _is_of_pyspy(parts[0])]
    return bool(found) and len(found) >= _SNIFFED_SHARE * len(lines)


def read_pyspy_raw(stream: BinaryIO, name: str, info: CaptureInfo) -> Capture:
    """The capture of a raw text: one sample for each that was counted, without times.  ``FormatError`` without any stack."""
    reader = _Reader()
    for lines in line_blocks(stream):
        for line in lines:
            if line.strip():
                reader.line(line)
    if not reader.tables.counts:
        raise FormatError(name, "no line is a stack of py-spy's")
    notes = [f"{reader.unreadable} lines could not be read as stacks of py-spy's"] if reader.unreadable else []
    return reader.tables.capture(name, info, 0, ["the text does not tell py-spy's rate", *notes])


@dataclass(slots=True)
class _Reader:
    tables: PySpyTables = field(default_factory=PySpyTables)
    unreadable: int = 0

    def line(self, line: str) -> None:
        parts = _split(line)
        thread, frames = _split_stack(parts[0]) if parts is not None else (PySpyThread(), [])
        if parts is None or (not frames and thread == PySpyThread()):
            self.unreadable += 1
        elif parts[1]:
            self.tables.add(self.tables.thread(thread), self.tables.stack(frames), parts[1])


def _split(line: str) -> tuple[str, int] | None:
    """(stack, count) of a line, ``None`` when it does not end with a count."""
    parts = line.rsplit(None, 1)
    return (parts[0], int(parts[1])) if len(parts) == 2 and _COUNT.fullmatch(parts[1]) else None


def _is_of_pyspy(stack: str) -> bool:
    if _LABEL.match(stack):
        return True
    frames = (_frame(part) for part in stack.split(";"))
    return any(frame is not None and frame.is_python and frame.line > 0 for frame in frames)


def _split_stack(stack: str) -> tuple[PySpyThread, list[PySpyFrame]]:
    """What stands before the first frame belongs to the names of processes and of the thread; what is neither is empty."""
    parts = stack.split(";")
    thread, label = PySpyThread(), list[str]()
    for position, part in enumerate(parts):
        if _LABEL.match(part):
            thread, label = _named(thread, label), [part]
        elif _frame(part) is None or _is_quoted(label):
            if not label:
                return PySpyThread(), []
            label.append(part)
        else:
            frames = [_frame(each) or PySpyFrame(each, "", 0) for each in parts[position:]]
            return _named(thread, label), frames
    return _named(thread, label), []


def _named(thread: PySpyThread, label: Sequence[str]) -> PySpyThread:
    return with_label(thread, ";".join(label)) or thread


def _is_quoted(label: Sequence[str]) -> bool:
    """Whether what follows is still inside of a command line in quotation marks."""
    return bool(label) and label[0].startswith("process ") and not label[-1].endswith('"')


def _frame(part: str) -> PySpyFrame | None:
    """ "name (file:line)" or "name (file)"; found from its end, since names hold parentheses of their own."""
    name, opening, place = part.rpartition(" (")
    if not (name and opening and place.endswith(")") and len(place) > 1):
        return None
    file, colon, line = place[:-1].rpartition(":")
    if colon and file and _LINE_NUMBER.fullmatch(line):
        return PySpyFrame(name, file, int(line))
    return PySpyFrame(name, place[:-1], 0)
