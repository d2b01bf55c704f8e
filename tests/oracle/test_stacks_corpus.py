"""Public recordings of static programs without .eh_frame_hdr, from the recording to inline frames and lines: against the stacks
that another program printed of them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from collectors.recording_file import read_recording
from profiler.analysis.attribution.apply_symbols import apply_symbols, frames_by_dso
from profiler.model.dso import DsoKind
from profiler.model.frame_table import lookup_offsets
from profiler.model.symbols import SymbolizedCapture
from support.symbol_oracle import symbol_addresses
from symbolize.locate import Locator, SearchPaths
from symbolize.symbolizer import Symbolizer

LAMBDA = re.compile(r"<lambda\([^()<>]*\)>")
# (recording, program, samples, {why the other program prints another name: places})
RECORDINGS: dict[str, tuple[str, str, int, dict[str, int]]] = {
    "vector_static_gcc": ("perf.data", "vector_static_gcc_v9.1.0", 45, {"alias": 12, "beyond a symbol": 1}),
    "fork_static_gcc": ("perf.data.zstd", "fork", 106, {}),
    "parallel_static_gcc": ("perf.data.zstd", "parallel_static_gcc", 242, {"cut": 28, "alias": 2}),
}


@dataclass(frozen=True, slots=True)
class Place:
    """One function of an inline chain; ``name``: without parameters and template arguments; ``at``: file:line:column."""

    name: str
    at: str


@dataclass(frozen=True, slots=True)
class StackFrame:
    """``address``: link address that was looked up, in the kernel the recorded one; ``chain``: innermost first; empty for
    kernel frames, whose names are not known on another machine."""

    address: int
    chain: tuple[Place, ...]


Stack = tuple[StackFrame, ...]


def symbolized_recording(path: Path, binaries: Path) -> SymbolizedCapture:
    locator = Locator(SearchPaths((), (binaries,)))
    capture = read_recording(path, None, locator)
    symbolizer = Symbolizer(locator, None)
    frames = capture.frames
    answers = {
        row: symbolizer.symbolize(capture.dsos[row], frames.offset[asked], frames.is_return_address[asked])
        for row, asked in frames_by_dso(capture).items()
    }
    return apply_symbols(capture, answers)


def bare(name: str) -> str:
    """``std::vector<double>::push_back(double&&)`` as ``push_back``: tools write arguments and the scope of local names
    differently."""
    depth, kept = 0, []
    for character in LAMBDA.sub("lambda", name).replace("operator()", "operator@"):
        depth += character in "<([{"
        if depth == 0:
            kept.append(character)
        depth -= character in ">)]}"
    return "".join(kept).replace(" const", "").strip().rpartition("::")[2].rpartition(" ")[2]


def our_stacks(found: SymbolizedCapture, binaries: Path) -> dict[tuple[int, int], list[Stack]]:
    """{(thread, time): stacks, innermost frame first}."""
    capture = found.capture
    frames, chains = capture.frames, found.chains
    images = {row: Locator(SearchPaths((), (binaries,))).image(dso) for row, dso in enumerate(capture.dsos)}
    looked_up = lookup_offsets(frames.offset, frames.is_return_address)
    by_frame = []
    for row in range(len(frames)):
        image = images[int(frames.dso[row])]
        is_file = capture.dsos[int(frames.dso[row])].kind == DsoKind.FILE
        address = int(image.link_addresses(looked_up[row : row + 1])[0]) if image is not None else int(frames.offset[row])
        span = range(int(chains.start[row]), int(chains.start[row + 1])) if is_file else range(0)
        by_frame.append(StackFrame(address, tuple(_place(found, each) for each in span)))
    stacks: dict[tuple[int, int], list[Stack]] = {}
    for sample in range(len(capture.samples)):
        tid = int(capture.threads.tid[capture.samples.thread[sample]])
        stack = tuple(by_frame[row] for row in capture.stacks.frames_leaf_first(int(capture.samples.stack[sample])))
        stacks.setdefault((tid, int(capture.samples.time_ns[sample])), []).append(stack)
    return stacks


def _place(found: SymbolizedCapture, each: int) -> Place:
    chains = found.chains
    file = found.files[int(chains.file[each])] if chains.file[each] >= 0 else ""
    at = f"{file}:{chains.line[each]}:{chains.column[each]}" if chains.line[each] else ""
    return Place(bare(found.functions[int(chains.function[each])].name), at)


def expected_stacks(path: Path) -> dict[tuple[int, int], list[Stack]]:
    stacks: dict[tuple[int, int], list[Stack]] = {}
    for sample in json.loads(path.read_text())["samples"]:
        seconds, _, fraction = sample["time"].partition(".")
        key = (sample["tid"], int(seconds) * 10**9 + int(fraction))
        stacks.setdefault(key, []).append(tuple(_expected_frame(frame) for frame in sample["frames"]))
    return stacks


def _expected_frame(frame: dict[str, Any]) -> StackFrame:
    known = [function for function in frame["funcs"] if not function["kernel"]]
    return StackFrame(int(frame["addr"], 16), tuple(Place(bare(each["name"] or ""), each["at"] or "") for each in known))


def reason(mine: Place, other: Place, aliases: dict[str, str]) -> str:
    """Why the other program's name differs, "" when nothing explains it.

    alias: another symbol of the same address, of which perf's rules prefer ours.  cut: it prints a scope without the name.
    beyond a symbol: the last symbol before the address has no size, and its section ends before the address.
    """
    if mine.at != other.at:
        return ""
    if not other.name:
        return "cut"
    if other.name == "_init" and "+0x" in mine.name:
        return "beyond a symbol"
    return "alias" if aliases.get(mine.name, "ours") == aliases.get(other.name, "theirs") else ""


@pytest.mark.parametrize("name", RECORDINGS)
def test_stacks_inline_frames_and_lines(corpus: Path, name: str) -> None:
    recording, program, count, explained = RECORDINGS[name]
    directory = corpus / "KDAB+perfparser/tests/auto/perfdata" / name
    wanted = expected_stacks(corpus / "EXPECTED" / f"stacks.handed.{name}.{recording}.json")
    found = our_stacks(symbolized_recording(directory / recording, directory), directory)
    assert sum(map(len, wanted.values())) == sum(map(len, found.values())) == count
    assert found.keys() == wanted.keys()
    aliases = symbol_addresses(directory / program)
    reasons: Counter[str] = Counter()
    for key, stacks in wanted.items():
        for ours, theirs in zip(found[key], stacks, strict=True):
            reasons.update(differences(ours, theirs, aliases))
    assert dict(reasons) == explained


def differences(ours: Stack, theirs: Stack, aliases: dict[str, str]) -> Iterator[str]:
    """Reasons of other names; everything else must be equal."""
    assert [hex(each.address) for each in ours] == [hex(each.address) for each in theirs]
    for mine, other in zip(ours, theirs, strict=True):
        assert len(mine.chain) == len(other.chain), (mine, other)
        for place, other_place in zip(mine.chain, other.chain, strict=True):
            if place != other_place:
                why = reason(place, other_place, aliases)
                assert why, (place, other_place)
                yield why
