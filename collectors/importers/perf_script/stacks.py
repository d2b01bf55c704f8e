"""The lines of a sample's call stack into a row of the stack table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from collectors.importers.perf_script.frame_line import FrameText, SourceLine, parse_frame
from collectors.importers.perf_script.frame_rows import FrameRows
from collectors.importers.text_dsos import is_generated
from collectors.importers.text_tables import TextTables
from profiler.model.quick_dataclass import dataclass
from profiler.model.sample_table import StackState
from symbolize.unwind.thread_entries import THREAD_ENTRY_FUNCTIONS

# As many frames as the kernel and perf record by default.
_MAX_STACK_DEPTH = 127
# Texts that are remembered: many samples have one stack, and most stacks share most of their frames.
_REMEMBERED_CHARACTERS = 1 << 25
_REMEMBERED_LINES = 1 << 18
_JAVA_CALL = "->"
_NO_SYMBOL_PLACE = FrameText(0, "", "", False)


@dataclass(frozen=True, slots=True)
class StackText:
    """``row`` of the stack table, ``has_callers`` and ``has_inlines``: what the stack shows of how it was recorded;
    ``unreadable`` lines were left out."""

    row: int
    state: StackState
    has_callers: bool
    has_inlines: bool
    unreadable: int


@dataclass(slots=True)
class StackTexts:
    """Reads call stacks, each distinct text once as long as it is remembered."""

    tables: TextTables
    _stacks: dict[str, StackText] = field(default_factory=dict)
    _stack_characters: int = 0
    _lines: dict[str, FrameText | SourceLine | None] = field(default_factory=dict)
    _rows: FrameRows = field(init=False)

    def __post_init__(self) -> None:
        self._rows = FrameRows(self.tables)

    def read(self, lines: Sequence[str], is_cut: bool) -> StackText | None:
        """The stack of lines that follow a header; ``None`` when no line is a frame.  ``is_cut``: there were more."""
        text = "\n".join(lines)
        known = self._stacks.get(text)
        if known is None:
            frames, unreadable = self._frames(lines)
            if not frames:
                return None
            known = self._interned(frames, unreadable, is_cut)
            self._stack_characters += len(text)
            if self._stack_characters > _REMEMBERED_CHARACTERS:
                self._stacks.clear()
                self._stack_characters = len(text)
            self._stacks[text] = known
        return known

    def single(self, frame: FrameText | None) -> StackText:
        """The stack of a sample that was recorded without one: its own place, or nothing known."""
        row = self._rows.row(frame or _NO_SYMBOL_PLACE, is_exact=True)
        return StackText(self.tables.stack([row]), StackState.NO_USER_STACK, False, False, 0)

    def is_frame(self, line: str) -> bool:
        """Whether a line can be one of a call stack."""
        return isinstance(self._parsed(line), FrameText)

    def _parsed(self, line: str) -> FrameText | SourceLine | None:
        if line not in self._lines:
            if len(self._lines) > _REMEMBERED_LINES:
                self._lines.clear()
            self._lines[line] = parse_frame(line)
        return self._lines[line]

    def _frames(self, lines: Sequence[str]) -> tuple[list[FrameText], int]:
        """(frames innermost first, lines that are neither frame nor source line)."""
        frames: list[FrameText] = []
        unreadable = 0
        for line in lines:
            parsed = self._parsed(line)
            if parsed is None:
                unreadable += 1
            elif isinstance(parsed, FrameText):
                frames += _inlined_methods(parsed) if _JAVA_CALL in parsed.symbol else (parsed,)
            elif parsed.is_inlined and frames:
                frames[-1] = frames[-1]._replace(is_inlined=True)
        return frames, unreadable

    def _interned(self, frames: Sequence[FrameText], unreadable: int, is_cut: bool) -> StackText:
        has_inlines = any(frame.is_inlined for frame in frames)
        places: Sequence[Sequence[FrameText]] = _places(frames) if has_inlines else [(frame,) for frame in frames]
        rows: list[int] = []
        is_user_seen = False
        for place in places:
            is_exact = not rows
            if not is_user_seen and not self._rows.is_kernel(place[-1]):
                is_user_seen = is_exact = True
            rows += [self._rows.row(frame, is_exact) for frame in place]
        if not is_user_seen:
            state = StackState.NO_USER_STACK
        elif frames[-1].symbol in THREAD_ENTRY_FUNCTIONS:
            state = StackState.GAP_POSSIBLE
        else:
            state = StackState.TRUNCATED if is_cut or len(places) >= _MAX_STACK_DEPTH else StackState.ROOTLESS
        return StackText(self.tables.stack(rows[::-1]), state, len(rows) > 1, has_inlines, unreadable)


def _inlined_methods(frame: FrameText) -> Sequence[FrameText]:
    """Frames of Java methods that are inlined into one another, innermost first: perf-map-agent names such code
    "Louter;::method->Linner;::method"."""
    methods = frame.symbol.split(_JAVA_CALL)
    if not is_generated(frame.dso) or not all("::" in method for method in methods):
        return (frame,)
    return [
        *(frame._replace(symbol=method, is_inlined=True) for method in reversed(methods[1:])),
        frame._replace(symbol=methods[0]),
    ]


def _places(frames: Sequence[FrameText]) -> list[list[FrameText]]:
    """The frames by place, innermost first: inlined ones stand before the function that holds their code, at the same address
    and in the same file."""
    places: list[list[FrameText]] = []
    place: list[FrameText] = []
    for frame in frames:
        if place and frame.address != place[-1].address:
            places.append(place)
            place = []
        place.append(frame)
        if not frame.is_inlined:
            places.append([inlined._replace(dso=frame.dso) for inlined in place])
            place = []
    return [*places, place] if place else places
