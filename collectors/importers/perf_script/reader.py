"""`perf script` text into a capture: finds where samples begin and end, and counts what cannot be read."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

from collectors.importers.perf_script.comments import HeaderComments
from collectors.importers.perf_script.frame_line import FrameText, parse_frame, parse_place
from collectors.importers.perf_script.sample_header import (
    SampleHeader,
    is_other_record,
    parse_timed_header,
    parse_untimed_header,
)
from collectors.importers.perf_script.stacks import StackText, StackTexts
from collectors.importers.text_lines import first_lines, line_blocks
from collectors.importers.text_tables import SAMPLES, SampleText, TextFacts, TextTables
from profiler.errors import FormatError
from profiler.model.capture import Capture
from profiler.model.event import CLOCK_EVENTS, Event, base_event_name
from profiler.model.run import CaptureInfo

# A stack with its inlined frames and source lines is far shorter; more lines are left out.
_MOST_STACK_LINES = 1 << 16
_LARGEST_PERIOD = 2**62
_MOST_EVENTS = 2**15 - 1
_SNIFFED_LINES = 400
_NO_SAMPLE_LINE = "no line begins a sample as perf script prints it (comm pid time: event:); write it with perf script > FILE"
_NO_SAMPLE_LINE = "no line begins a sample as perf script prints it (comm pid time: event:); write it with perf script > FILE"
_HEADER_MARKS = ("# captured on", "# cmdline :")


def is_perf_script(head: bytes) -> bool:
    """Whether a file that begins with ``head`` (some thousand bytes) is `perf script` text."""
    lines = first_lines(head)[:_SNIFFED_LINES]
    if any(line.startswith(_HEADER_MARKS) for line in lines):
        return True
    if any(parse_timed_header(line) for line in lines if not line.startswith("#")):
        return True
    # Without times: a line that may be a header above one that has the address and the name of a frame.
    return any(
        _is_place(next_line) and (parse_untimed_header(line) is not None or (next_line[0].isspace() and not line[:1].isspace()))
        for line, next_line in itertools.pairwise(lines)
    )


def _is_place(line: str) -> bool:
    frame = parse_frame(line)
    return isinstance(frame, FrameText) and frame.address >= 0 and bool(frame.symbol)


def read_perf_script(stream: BinaryIO, name: str, info: CaptureInfo) -> Capture:
    """The capture of `perf script` text: names as printed (demangled), periods as weights.

    Where no period is printed every sample counts 1 and the event's unit is "samples".  Addresses are kept as printed and are
    never looked up.  Inlined frames are frames of their own; source lines are not kept.  ``FormatError`` when no line begins a
    sample.
    """
    text = _Reader()
    for lines in line_blocks(stream):
        for line in lines:
            text.line(line)
    text.end()
    return text.capture(name, info)


@dataclass(slots=True)
class _EventCount:
    """``row`` of an event, and its samples with and without a printed period."""

    row: int
    with_period: int = 0
    without_period: int = 0


@dataclass(slots=True)
class _Reader:
    """Lines in order.  ``_header``: of the sample that is being read, ``_is_certain`` when nothing else looks like it;
    ``_body``: the lines below it, ``_is_cut`` when there were too many; ``_title``: a line before a stack that is no header."""

    tables: TextTables = field(default_factory=TextTables)
    comments: HeaderComments = field(default_factory=HeaderComments)
    events: dict[str, _EventCount] = field(default_factory=dict)
    unreadable: int = 0
    first_unreadable: str = ""
    has_callers: bool = False
    has_inlines: bool = False
    _stacks: StackTexts = field(init=False)
    _is_headed: bool = False
    _header: SampleHeader | None = None
    _is_certain: bool = False
    _body: list[str] = field(default_factory=list)
    _is_cut: bool = False
    _title: str = ""

    def __post_init__(self) -> None:
        self._stacks = StackTexts(self.tables)

    def line(self, line: str) -> None:
        """The next line of the text."""
        if line[:1] == "\t" and self._header is not None and len(self._body) < _MOST_STACK_LINES:
            self._body.append(line)
        elif not line or line.isspace():
            # A blank line between a header and its stack does not part them.
            if self._body:
                self._end_sample()
        elif line[0] == "#":
            self.comments.add(line)
        else:
            self._classify(line)

    def end(self) -> None:
        """There are no more lines."""
        self._end_sample()
        self._drop_title()

    def _classify(self, line: str) -> None:
        """A line that may begin a sample or belong to its stack."""
        header = parse_timed_header(line)
        if header is not None:
            self._begin(header, is_certain=True)
        elif is_other_record(line):
            self._end_sample()
        elif self._header is not None and self._may_follow(line):
            self._add_to_body(line)
        elif (header := parse_untimed_header(line)) is not None:
            self._begin(header, is_certain=False)
        elif self._header is None and not self._is_headed and line[0].isspace() and self._stacks.is_frame(line):
            header = SampleHeader(self._title, -1, -1, -1, -1, -1, "", "")
            self._title = ""
            self._begin(header, is_certain=False)
            self._add_to_body(line)
        else:
            self._end_sample()
            self._drop_title()
            self._title = line.strip()

    def _may_follow(self, line: str) -> bool:
        """Whether a line can be one of the stack below the header; a sample that has its place in its header has no stack, and
        the next such line may look like a frame."""
        if not line[0].isspace() and not self._stacks.is_frame(line):
            return False
        is_alone = not self._body and self._header is not None and parse_place(self._header.rest) is not None
        return not (is_alone and parse_untimed_header(line) is not None)

    def _add_to_body(self, line: str) -> None:
        if len(self._body) < _MOST_STACK_LINES:
            self._body.append(line)
        else:
            self._is_cut = True

    def _begin(self, header: SampleHeader, is_certain: bool) -> None:
        self._end_sample()
        self._drop_title()
        self._header, self._is_certain = header, is_certain
        self._is_headed |= header.event != "" or header.time_ns >= 0

    def _end_sample(self) -> None:
        """The sample that is being read, if any, is complete."""
        header, body, is_cut = self._header, self._body, self._is_cut
        self._header, self._body, self._is_cut = None, [], False
        if header is None:
            return
        stack = self._stacks.read(body, is_cut) if body else None
        if stack is None:
            for line in body:
                self._cannot_read(line)
            place = parse_place(header.rest)
            if place is None and not self._is_certain:
                self._cannot_read(f"{header.comm} {header.tid} {header.event}:")
                return
            stack = self._stacks.single(place)
        if stack.unreadable:
            self._cannot_read(next(line for line in body if parse_frame(line) is None), stack.unreadable)
        self._add_sample(header, stack)

    def _add_sample(self, header: SampleHeader, stack: StackText) -> None:
        event = self.events.setdefault(header.event, _EventCount(len(self.events)))
        if header.period < 0:
            event.without_period += 1
        else:
            event.with_period += 1
        self.has_callers |= stack.has_callers
        self.has_inlines |= stack.has_inlines
        self.tables.add(
            SampleText(
                time_ns=max(header.time_ns, 0),
                thread=self.tables.thread(header.pid, header.tid, header.comm),
                cpu=header.cpu,
                event=min(event.row, _MOST_EVENTS),
                stack=stack.row,
                weight=1 if header.period < 0 else min(header.period, _LARGEST_PERIOD),
                state=stack.state,
            )
        )

    def _drop_title(self) -> None:
        if self._title:
            self._cannot_read(self._title)
        self._title = ""

    def _cannot_read(self, line: str, count: int = 1) -> None:
        self.unreadable += count
        self.first_unreadable = self.first_unreadable or line.strip()

    def capture(self, name: str, info: CaptureInfo) -> Capture:
        """The capture of all lines that were given."""
        if not len(self.tables) and not self.comments.facts:
            raise FormatError(name, _NO_SAMPLE_LINE)
        if len(self.events) > _MOST_EVENTS:
            raise FormatError(name, f"{len(self.events)} event names: no recording has so many, the text is damaged")
        events = tuple(_event(event, count) for event, count in self.events.items())
        completed = self.comments.completed(info, events[0].name if events else "", self.has_inlines, self.has_callers)
        is_dwarf = completed.perf.call_graph == "dwarf"
        return self.tables.capture(name, TextFacts(completed, events, self._notes(events), is_dwarf))

    def _notes(self, events: Sequence[Event]) -> tuple[str, ...]:
        notes = []
        if not len(self.tables):
            notes.append("no samples in the text; the program may have ended before the first")
        elif not self.has_callers:
            notes.append("recorded without call stacks; use --call-graph")
        if self.unreadable:
            lines = "1 line" if self.unreadable == 1 else f"{self.unreadable} lines"
            notes.append(f"{lines} could not be read as perf script text, the first: {self.first_unreadable[:60]!r}")
        notes += [
            f"{event.name}: only {count.with_period} of {count.with_period + count.without_period} samples are printed with a "
            "period; each counts the same"
            for event, count in zip(events, self.events.values(), strict=True)
            if count.with_period and count.without_period
        ]
        return tuple(notes)


def _event(name: str, count: _EventCount) -> Event:
    base = base_event_name(name)
    if count.without_period:
        return Event(name or SAMPLES, SAMPLES, 0, 0)
    return Event(name or SAMPLES, "ns" if base in CLOCK_EVENTS else base or SAMPLES, 0, 0)
