"""Symbolizers' answers put to a capture's frames: a new value, the capture itself stays as it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from profiler.model.arrays import BoolColumn, Int32Column, UInt8Column, UInt64Column, distinct
from profiler.model.capture import Capture
from profiler.model.dso import Dso, DsoKind
from profiler.model.function import Function, NameSource
from profiler.model.function_table import FunctionTable
from profiler.model.quick_dataclass import dataclass
from profiler.model.symbols import NO_CAVEATS, DsoOutcome, DsoSymbols, InlineChains, SymbolizedCapture

KeyOfName = Callable[[str], tuple[str, str]]
"""(key, trait key) of a function's shown or linkage name."""

_KINDS_WITH_FILE_OFFSETS = (DsoKind.FILE, DsoKind.VDSO)
_LAST_LINE = 2**31 - 1


def name_as_key(name: str) -> tuple[str, str]:
    """The key of a name that needs no canonical form."""
    return name, ""


def frames_by_dso(capture: Capture) -> dict[int, Int32Column]:
    """Frame rows that a symbolizer must answer for, by row of the DSO table: frames with file offsets whose name was not
    already known at capture.  Rows ascend."""
    frames = capture.frames
    open_frames = frames.symbol < 0
    asked = {}
    for row, dso in enumerate(capture.dsos):
        if dso.kind in _KINDS_WITH_FILE_OFFSETS:
            rows = np.flatnonzero(open_frames & (frames.dso == row)).astype(np.int32)
            if len(rows):
                asked[row] = rows
    return asked


def apply_symbols(
    capture: Capture, answers: Mapping[int, DsoSymbols], key_of_name: KeyOfName = name_as_key
) -> SymbolizedCapture:
    """Gives every frame its inline chain.

    ``answers``: by DSO row, chains in the order of ``frames_by_dso``; a DSO without an answer stays unresolved.
    ``key_of_name`` makes the keys of names that were known at capture.
    """
    asked = frames_by_dso(capture)
    names = _Names()
    pieces = [
        _answered(rows, answers[dso], names)
        for dso, rows in asked.items()
        if dso in answers and len(answers[dso].chains.start) == len(rows) + 1
    ]
    is_answered = np.zeros(len(capture.frames), np.bool_)
    for piece in pieces:
        is_answered[piece.frames] = True
    pieces.append(_known_at_capture(capture, ~is_answered, names, key_of_name))
    chains, has_debug_info = _in_frame_order(pieces, len(capture.frames))
    functions, rows = names.table(chains.function)
    chains = replace(chains, function=rows)
    return SymbolizedCapture(
        capture=capture,
        functions=functions,
        files=tuple(names.files),
        chains=chains,
        has_debug_info=has_debug_info,
        outcomes=_outcomes(capture, answers, chains, functions),
    )


@dataclass(slots=True)
class _Names:
    """Functions and files, each once; filled while one capture is put together.

    Places without a name have numbers below zero until all are there: ``places`` holds them in pieces, as row of
    ``place_files`` and offset, ``place_count`` is how many they are.
    """

    functions: dict[Function, int] = field(default_factory=dict)
    files: dict[str, int] = field(default_factory=dict)
    place_files: dict[str, int] = field(default_factory=dict)
    places: list[tuple[Int32Column, UInt64Column]] = field(default_factory=list)
    place_count: int = 0

    def function(self, function: Function) -> int:
        return self.functions.setdefault(function, len(self.functions))

    def nameless(self, file_names: Sequence[str], file: Int32Column, offset: UInt64Column) -> Int32Column:
        """``file``: row of ``file_names``."""
        rows = [self.place_files.setdefault(name, len(self.place_files)) for name in file_names]
        self.places.append((np.array(rows, np.int32)[file], offset))
        self.place_count += len(file)
        return np.arange(len(file) - self.place_count - 1, -self.place_count - 1, -1, dtype=np.int32)

    def file(self, path: str) -> int:
        return self.files.setdefault(path, len(self.files))

    def table(self, numbers: Int32Column) -> tuple[FunctionTable, Int32Column]:
        """(all functions, the rows that ``numbers`` have become)."""
        files, offsets = np.zeros(0, np.int32), np.zeros(0, np.uint64)
        if self.places:
            files, offsets = (np.concatenate(column) for column in zip(*self.places, strict=True))
        order = np.lexsort((offsets, files))
        file, offset = files[order], offsets[order]
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = (file[1:] != file[:-1]) | (offset[1:] != offset[:-1])
        row_of = np.zeros(len(order), np.int32)
        row_of[order] = len(self.functions) - 1 + np.cumsum(is_first)
        rows, is_nameless = numbers.copy(), numbers < 0
        rows[is_nameless] = row_of[-1 - numbers[is_nameless]]
        return FunctionTable(tuple(self.functions), tuple(self.place_files), file[is_first], offset[is_first]), rows


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Piece:
    """Chains of some frames, with functions and files already in the rows of the whole capture."""

    frames: Int32Column
    chains: InlineChains
    has_debug_info: UInt8Column


def _answered(frames: Int32Column, answer: DsoSymbols, names: _Names) -> _Piece:
    table = answer.functions
    named = np.array([names.function(function) for function in table.named], np.int32)
    functions = np.concatenate([named, names.nameless(table.file_names, table.file, table.offset)])
    files = np.array([*(names.file(path) for path in answer.files), -1], np.int32)
    chains = answer.chains
    moved = InlineChains(chains.start, functions[chains.function], files[chains.file], chains.line, chains.column)
    return _Piece(frames, moved, answer.has_debug_info)


def _known_at_capture(capture: Capture, is_open: BoolColumn, names: _Names, key_of_name: KeyOfName) -> _Piece:
    """Chains of one frame each for what no symbolizer answered: names from the recording, else the address itself; for
    interpreted code also its source line."""
    frames = np.flatnonzero(is_open).astype(np.int32)
    symbol, dso = capture.frames.symbol[frames], capture.frames.dso[frames]
    files, lines = _sources(capture, frames, names)
    functions = np.zeros(len(frames), np.int32)
    named = np.flatnonzero(symbol >= 0)
    functions[named] = _named_at_capture(capture, symbol[named], files[named] >= 0, names, key_of_name)
    has_offset = np.array([*(each.kind in _KINDS_WITH_FILE_OFFSETS for each in capture.dsos), False], np.bool_)[dso]
    places = np.flatnonzero((symbol < 0) & has_offset)
    offsets = capture.frames.offset[frames[places]]
    functions[places] = names.nameless([each.name for each in capture.dsos], dso[places], offsets)
    others = np.flatnonzero((symbol < 0) & ~has_offset)
    for row in distinct(dso[others]).tolist():
        name = capture.dsos[row].name if row >= 0 else "[unknown]"
        functions[others[dso[others] == row]] = names.function(Function(name, name, name, "", NameSource.UNRESOLVED))
    start, columns = np.arange(len(frames) + 1, dtype=np.int32), np.zeros(len(frames), np.int32)
    return _Piece(frames, InlineChains(start, functions, files, lines, columns), np.zeros(len(frames), np.uint8))


def _named_at_capture(
    capture: Capture, symbol: Int32Column, is_source: BoolColumn, names: _Names, key_of_name: KeyOfName
) -> Int32Column:
    """Functions by names in the recording; ``is_source``: of interpreted code."""
    pairs, number = np.unique(2 * symbol.astype(np.int64) + is_source, return_inverse=True)
    functions = []
    for pair in pairs.tolist():
        name = capture.strings[pair >> 1]
        # The key of native code would take "<module>" for template arguments.
        key = name_as_key(name) if pair & 1 else key_of_name(name)
        functions.append(names.function(Function(name, name, *key, NameSource.CAPTURE)))
    return np.array(functions, np.int32)[number]


def _sources(capture: Capture, frames: Int32Column, names: _Names) -> tuple[Int32Column, Int32Column]:
    """(file, line) of each of the frames: -1 and 0 but for code that is interpreted from a source file."""
    is_source = np.array([*(dso.kind == DsoKind.SOURCE for dso in capture.dsos), False], np.bool_)[capture.frames.dso[frames]]
    lines = np.where(is_source, np.minimum(capture.frames.offset[frames], _LAST_LINE), 0).astype(np.int32)
    dso = capture.frames.dso[frames]
    files = np.full(len(frames), -1, np.int32)
    for row in distinct(dso[is_source]).tolist():
        files[is_source & (dso == row)] = names.file(capture.dsos[row].path)
    return files, lines


def _in_frame_order(pieces: list[_Piece], frame_count: int) -> tuple[InlineChains, UInt8Column]:
    lengths = np.zeros(frame_count, np.int32)
    has_debug_info = np.zeros(frame_count, np.uint8)
    for piece in pieces:
        lengths[piece.frames] = np.diff(piece.chains.start)
        has_debug_info[piece.frames] = piece.has_debug_info
    start = np.zeros(frame_count + 1, np.int32)
    np.cumsum(lengths, out=start[1:])
    columns = [np.zeros(int(start[-1]), np.int32) for _ in range(4)]
    for piece in pieces:
        length = np.diff(piece.chains.start)
        shift = np.repeat(start[:-1][piece.frames] - piece.chains.start[:-1], length)
        target = shift + np.arange(len(shift), dtype=np.int32)
        source = (piece.chains.function, piece.chains.file, piece.chains.line, piece.chains.column)
        for column, values in zip(columns, source, strict=True):
            column[target] = values
    return InlineChains(start, *columns), has_debug_info


def _outcomes(
    capture: Capture, answers: Mapping[int, DsoSymbols], chains: InlineChains, functions: FunctionTable
) -> tuple[DsoOutcome, ...]:
    is_nameless = functions.sources() == NameSource.UNRESOLVED
    last = chains.start[1:] - 1
    unresolved = is_nameless[chains.function[last]] if len(last) else np.zeros(0, np.bool_)
    outcomes = []
    for row, dso in enumerate(capture.dsos):
        in_dso = capture.frames.dso == row
        count, nameless = int(in_dso.sum()), int((in_dso & unresolved).sum())
        if count:
            status = answers[row].status if row in answers else (_reason(dso) if nameless else "")
            caveats = answers[row].caveats if row in answers else NO_CAVEATS
            outcomes.append(DsoOutcome(row, count, nameless, status, caveats))
    return tuple(outcomes)


_NO_KERNEL_NAMES = "not the kernel that runs here, or its names are hidden (kernel.kptr_restrict)"


def _reason(dso: Dso) -> str:
    reasons = {
        DsoKind.KERNEL: _NO_KERNEL_NAMES,
        DsoKind.MODULE: _NO_KERNEL_NAMES,
        DsoKind.ANONYMOUS: "code in anonymous memory (generated at run time) has no file with symbols",
        # A file of unknown kind: its addresses come from a text, which does not say what they count from.
        DsoKind.UNKNOWN: "no mapping covers these addresses" if dso.path.startswith("[") else "no name in the imported text",
    }
    return reasons.get(dso.kind, "not symbolized")
