"""py-spy's raw text (`py-spy record --format raw`): folded stacks whose frames name a file and a line.

Nothing in it is escaped.  A semicolon in a thread's name is put back as well as can be; in py-spy's speedscope files every
name is whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import BinaryIO

from collectors.importers.pyspy_tables import PySpyFrame, PySpyTables, PySpyThread, with_label
from collectors.importers.text_lines import first_lines, line_blocks
from profiler.errors import FormatError
from profiler.model.capture import Capture
from profiler.model.run import CaptureInfo

_LINE = re.compile(r"(?P<stack>.*\S)[ \t]+(?P<count>\d{1,18})[ \t]*", re.DOTALL)
_FRAME = re.compile(r"(?P<name>.+) \((?P<file>.+?)(?::(?P<line>\d{1,9}))?\)", re.DOTALL)
_PYTHON_PLACE = re.compile(r" \([^;]*(?:\.pyw?|>):\d+\)(?:;| \d+$)")
_LABEL = re.compile(r'^(?:process \d+:"|thread \((?:0x[0-9A-Fa-f]+|\d+)\))')
_SNIFFED_SHARE = 0.8


def is_pyspy_raw(head: bytes) -> bool:
    """Whether a file that begins with ``head`` holds py-spy's raw text: nearly every stack has a Python source line or says
    which of py-spy's threads it is of."""
    lines = [line for line in first_lines(head)[:-1] or first_lines(head) if line.strip()]
    found = [line for line in lines if _LINE.fullmatch(line) and (_LABEL.search(line) or _PYTHON_PLACE.search(line))]
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
        found = _LINE.fullmatch(line)
        if found is None:
            self.unreadable += 1
            return
        thread, frames = _split_stack(found["stack"])
        if not frames and thread == PySpyThread():
            self.unreadable += 1
        elif int(found["count"]):
            self.tables.add(self.tables.thread(thread), self.tables.stack(frames), int(found["count"]))


def _split_stack(text: str) -> tuple[PySpyThread, list[PySpyFrame]]:
    """What stands before the first frame belongs to the names of processes and of the thread."""
    thread, frames, label = PySpyThread(), list[PySpyFrame](), ""
    for part in text.split(";"):
        frame = _FRAME.fullmatch(part)
        if frames or (frame is not None and not _is_open(label, part)):
            frames.append(_frame(part, frame))
            continue
        label = part if not label or _LABEL.search(part) else f"{label};{part}"
        thread = with_label(thread, label) or thread
    return thread, frames


def _is_open(label: str, part: str) -> bool:
    """Whether ``part`` begins a label, or is inside of a command line in quotation marks."""
    return _LABEL.search(part) is not None or (label.startswith("process ") and not label.endswith('"'))


def _frame(part: str, found: re.Match[str] | None) -> PySpyFrame:
    return PySpyFrame(found["name"], found["file"], int(found["line"] or 0)) if found else PySpyFrame(part, "", 0)
