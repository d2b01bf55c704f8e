"""Profiles drawn as text: one column per sample, outermost frame on top, so that a test shows the stacks it is about.

    weight  10      20              5
    thread  7       7               7/9:worker
    ---
            main    main            main
            hash    libc.so!malloc  hash > rotate@sha.c:12
            .       [kernel]!fault  .

Columns are separated by two or more blanks; "." is an empty cell.  A frame is ``function`` or ``dso!function``, "?" is a
function without a name; ``outer > inner`` is one physical frame with its inline chain.  ``function@file:line`` gives a
source line, ``T::f as Trait::f`` a trait key.  Rows above "---": ``weight`` (default 1), ``time`` (ns; default: position),
``state`` (ok, gap, rootless, truncated, none), ``thread`` (``pid``, ``pid/tid``, either with ``:thread-name``),
``event`` (row of the event table).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from profiler.analysis.attribution.apply_symbols import apply_symbols, frames_by_dso
from profiler.model.arrays import BoolColumn, UInt64Column
from profiler.model.capture import Capture
from profiler.model.dso import Dso, DsoKind
from profiler.model.event import Event
from profiler.model.frame_table import CpuMode, FrameTable
from profiler.model.function import Function, NameSource
from profiler.model.function_table import table_of_named
from profiler.model.quality import CaptureQuality
from profiler.model.run import CaptureInfo, HostFacts, ProgramFacts, RunIdentity, RunMode
from profiler.model.sample_table import SampleTable, StackState
from profiler.model.stack_table import StackTable
from profiler.model.symbols import DsoSymbols, InlineChains, SymbolizedCapture
from profiler.model.thread_table import ThreadTable

APP = "app"
CPU_CLOCK = Event("cpu-clock", "ns", 1999, 0)
STATES = {
    "ok": StackState.COMPLETE,
    "gap": StackState.GAP_POSSIBLE,
    "rootless": StackState.ROOTLESS,
    "truncated": StackState.TRUNCATED,
    "none": StackState.NO_USER_STACK,
}


@dataclass(frozen=True, slots=True)
class DrawnSample:
    """One column: physical frames outermost first."""

    frames: tuple[str, ...]
    weight: int = 1
    time_ns: int = 0
    state: StackState = StackState.COMPLETE
    pid: int = 7
    tid: int = 7
    thread_name: str = "main"
    event: int = 0


@dataclass(frozen=True, slots=True)
class DrawnEntry:
    """One entry of an inline chain as drawn."""

    function: Function
    file: str
    line: int


@dataclass(slots=True)
class DrawnSymbols:
    """A symbolizer that knows the chains that were drawn: (DSO path, file offset) -> chain, innermost first."""

    chains: dict[tuple[str, int], tuple[DrawnEntry, ...]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def symbolize(self, dso: Dso, offsets: UInt64Column, is_return_address: BoolColumn) -> DsoSymbols:
        self.asked.append(dso.path)
        chains = [self.chains[dso.path, offset] for offset in offsets.tolist()]
        functions = list(dict.fromkeys(entry.function for chain in chains for entry in chain))
        files = list(dict.fromkeys(entry.file for chain in chains for entry in chain if entry.file))
        entries = [entry for chain in chains for entry in chain]
        start = np.cumsum([0, *(len(chain) for chain in chains)]).astype(np.int32)
        nameless = any(entry.function.name_source is NameSource.UNRESOLVED for entry in entries)
        return DsoSymbols(
            functions=table_of_named(functions),
            files=tuple(files),
            chains=InlineChains(
                start,
                np.array([functions.index(entry.function) for entry in entries], np.int32),
                np.array([files.index(entry.file) if entry.file else -1 for entry in entries], np.int32),
                np.array([entry.line for entry in entries], np.int32),
                np.zeros(len(entries), np.int32),
            ),
            has_debug_info=np.array([bool(chain[0].file) for chain in chains], np.uint8),
            status="stripped: no symbol table" if nameless else "",
        )


@dataclass(frozen=True, slots=True)
class DrawnProfile:
    capture: Capture
    symbols: DrawnSymbols

    def symbolized(self) -> SymbolizedCapture:
        frames = self.capture.frames
        answers = {
            dso: self.symbols.symbolize(self.capture.dsos[dso], frames.offset[rows], frames.is_return_address[rows])
            for dso, rows in frames_by_dso(self.capture).items()
        }
        return apply_symbols(self.capture, answers)


def profile_from_text(text: str, info: CaptureInfo | None = None, events: Sequence[Event] = (CPU_CLOCK,)) -> DrawnProfile:
    return draw(samples_from_text(text), info, events)


def samples_from_text(text: str) -> list[DrawnSample]:
    lines = [line for line in text.splitlines() if line.strip()]
    middle = next((number for number, line in enumerate(lines) if line.strip() == "---"), -1)
    heads = {cells[0]: cells[1:] for cells in map(_cells, lines[: max(middle, 0)])}
    body = [_cells(line) for line in lines[middle + 1 :]]
    width = len(body[0])
    assert all(len(row) == width for row in [*body, *heads.values()]), "every row needs a cell per column; '.' is empty"
    return [_sample(column, heads, body) for column in range(width)]


def info_of(variant: str = "base", round_number: int = 0, mode: RunMode = RunMode.PROFILED, **changes: object) -> CaptureInfo:
    info = CaptureInfo(
        identity=RunIdentity("20260101-000000-abcd", variant, round_number, mode, round_number),
        host=HostFacts(hostname="host1"),
        program=ProgramFacts(path=f"/bin/{APP}"),
    )
    return replace(info, **changes)  # type: ignore[arg-type]


def draw(
    samples: Sequence[DrawnSample], info: CaptureInfo | None = None, events: Sequence[Event] = (CPU_CLOCK,)
) -> DrawnProfile:
    """Builds the capture; stacks with equal frames are one row, samples are sorted by time."""
    drawing = _Drawing()
    rows = [(sample, drawing.stack(sample.frames), drawing.thread(sample)) for sample in samples]
    rows.sort(key=lambda row: row[0].time_ns)
    ordered = [sample for sample, _, _ in rows]
    table = SampleTable(
        time_ns=np.array([sample.time_ns for sample in ordered], np.uint64),
        thread=np.array([thread for _, _, thread in rows], np.int32),
        cpu=np.zeros(len(rows), np.int16),
        event=np.array([sample.event for sample in ordered], np.int16),
        stack=np.array([stack for _, stack, _ in rows], np.int32),
        weight=np.array([sample.weight for sample in ordered], np.int64),
        state=np.array([sample.state for sample in ordered], np.uint8),
    )
    capture = Capture(
        info=info or info_of(),
        quality=CaptureQuality(samples=len(rows)),
        strings=tuple(drawing.strings),
        dsos=tuple(drawing.dsos),
        frames=drawing.frame_table(),
        stacks=StackTable(*np.array(list(drawing.stacks) or np.zeros((0, 2)), np.int32).reshape(-1, 2).T.copy()),
        threads=ThreadTable(*np.array(list(drawing.threads) or np.zeros((0, 4)), np.int32).reshape(-1, 4).T.copy()),
        samples=table,
        events=tuple(events),
    )
    return DrawnProfile(capture, drawing.symbols)


def _cells(line: str) -> list[str]:
    return re.split(r"\s{2,}", line.strip())


def _sample(column: int, heads: Mapping[str, list[str]], body: list[list[str]]) -> DrawnSample:
    head = {name: cells[column] for name, cells in heads.items()}
    where, _, thread_name = head.get("thread", "7").partition(":")
    pid, _, tid = where.partition("/")
    return DrawnSample(
        frames=tuple(row[column] for row in body if row[column] != "."),
        weight=int(head.get("weight", "1")),
        time_ns=int(head.get("time", str(column))),
        state=STATES[head.get("state", "ok")],
        pid=int(pid),
        tid=int(tid or pid),
        thread_name=thread_name or "main",
        event=int(head.get("event", "0")),
    )


@dataclass(slots=True)
class _Drawing:
    """Tables while they are drawn; every dict maps a row's content to its number."""

    strings: dict[str, int] = field(default_factory=dict)
    dsos: dict[Dso, int] = field(default_factory=dict)
    frames: dict[tuple[int, int, int, int, int], int] = field(default_factory=dict)
    stacks: dict[tuple[int, int], int] = field(default_factory=dict)
    threads: dict[tuple[int, int, int, int], int] = field(default_factory=dict)
    symbols: DrawnSymbols = field(default_factory=DrawnSymbols)

    def stack(self, frames: Sequence[str]) -> int:
        assert frames, "a sample needs a frame"
        stack = -1
        for text in frames:
            stack = self.stacks.setdefault((stack, self.frame(text)), len(self.stacks))
        return stack

    def thread(self, sample: DrawnSample) -> int:
        names = self.string(APP), self.string(sample.thread_name)
        return self.threads.setdefault((sample.pid, sample.tid, *names), len(self.threads))

    def string(self, text: str) -> int:
        return self.strings.setdefault(text, len(self.strings))

    def frame(self, text: str) -> int:
        dso_name, bang, chain_text = text.partition("!")
        if not bang:
            dso_name, chain_text = APP, text
        kind = _kind(dso_name)
        path = dso_name if kind is not DsoKind.FILE else f"/bin/{dso_name}"
        dso = self.dsos.setdefault(Dso(path, b"", kind), len(self.dsos))
        offset = int.from_bytes(hashlib.sha256(chain_text.encode()).digest()[:4], "little")
        mode = CpuMode.KERNEL if kind in (DsoKind.KERNEL, DsoKind.MODULE) else CpuMode.USER
        symbol = -1
        if kind is DsoKind.FILE:
            entries = [_entry(part.strip(), dso_name, offset) for part in chain_text.split(" > ")]
            self.symbols.chains[path, offset] = tuple(reversed(entries))
        elif chain_text != "?":
            symbol = self.string(chain_text)
        return self.frames.setdefault((dso, offset, 1, mode, symbol), len(self.frames))

    def frame_table(self) -> FrameTable:
        dso, offset, is_return_address, mode, symbol = zip(*self.frames, strict=True) if self.frames else ((),) * 5
        return FrameTable(
            np.array(dso, np.int32),
            np.array(offset, np.uint64),
            np.array(is_return_address, np.bool_),
            np.array(mode, np.uint8),
            np.array(symbol, np.int32),
        )


def _kind(dso_name: str) -> DsoKind:
    kinds = {"[kernel]": DsoKind.KERNEL, "[unknown]": DsoKind.UNKNOWN, "[anon]": DsoKind.ANONYMOUS}
    return kinds.get(dso_name, DsoKind.MODULE if dso_name.startswith("[") else DsoKind.FILE)


def _entry(text: str, dso_name: str, offset: int) -> DrawnEntry:
    if text == "?":
        name = f"{dso_name}+0x{offset:x}"
        return DrawnEntry(Function(name, name, name, "", NameSource.UNRESOLVED), "", 0)
    text, _, place = text.partition("@")
    file, _, line = place.partition(":")
    key, _, trait = text.partition(" as ")
    return DrawnEntry(Function(key, key, key, trait, NameSource.SYMBOL_TABLE), file, int(line or "0"))
