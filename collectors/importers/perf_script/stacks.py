"""The lines of a sample's call stack into a row of the stack table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from collectors.importers.perf_script.frame_line import FrameText, SourceLine, parse_frame
from collectors.importers.text_dsos import is_generated, text_dso
from collectors.importers.text_tables import TextFrame, TextTables
from profiler.model.frame_table import CpuMode
from profiler.model.sample_table import StackState
from symbolize.demangle import demangle
from symbolize.unwind.thread_entries import THREAD_ENTRY_FUNCTIONS

# As many frames as the kernel and perf record by default.
_MAX_STACK_DEPTH = 127
# Texts that are remembered: many samples have one stack, and most stacks share most of their frames.
_REMEMBERED_CHARACTERS = 1 << 25
_REMEMBERED_LINES = 1 << 18
_MANGLED_PREFIXES = ("_Z", "_R", "__Z", "___Z", "?")
_RUST_HASH = re.compile(r"^[\w$.:]+::h[0-9a-f]{16}$")
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
    _names: dict[str, str] = field(default_factory=dict)

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
        row = self.tables.frame(self._frame(frame or _NO_SYMBOL_PLACE, is_return_address=False))
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
        rows: list[int] = []
        is_user_seen = False
        places = _places(frames)
        for place in places:
            mode = text_dso(place[-1].dso, place[-1].address)[1]
            is_innermost_user = mode is not CpuMode.KERNEL and not is_user_seen
            is_user_seen |= is_innermost_user
            is_return_address = bool(rows) and not is_innermost_user
            rows += [self.tables.frame(self._frame(frame, is_return_address)) for frame in place]
        if not is_user_seen:
            state = StackState.NO_USER_STACK
        elif frames[-1].symbol in THREAD_ENTRY_FUNCTIONS:
            state = StackState.GAP_POSSIBLE
        else:
            state = StackState.TRUNCATED if is_cut or len(places) >= _MAX_STACK_DEPTH else StackState.ROOTLESS
        row = self.tables.stack(rows[::-1])
        return StackText(row, state, len(rows) > 1, any(frame.is_inlined for frame in frames), unreadable)

    def _frame(self, frame: FrameText, is_return_address: bool) -> TextFrame:
        return TextFrame(frame.dso, max(frame.address, 0), self._name(frame.symbol), is_return_address)

    def _name(self, symbol: str) -> str:
        is_half_demangled = _RUST_HASH.search(symbol) is not None
        if not is_half_demangled and not symbol.startswith(_MANGLED_PREFIXES):
            return symbol
        if symbol not in self._names:
            self._names[symbol] = demangle(_mangled_again(symbol) if is_half_demangled else symbol)
        return self._names[symbol]


def _mangled_again(symbol: str) -> str:
    """The linkage name of a Rust function that perf demangled as if it were C++: "$LT$" and the like are still in it."""
    return "_ZN" + "".join(f"{len(part)}{part}" for part in symbol.split("::")) + "E"


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
