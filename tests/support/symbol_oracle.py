"""addr2line and llvm-symbolizer as oracles for inline chains."""

from __future__ import annotations

import posixpath
import random
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from profiler.model.arrays import UInt64Column
from profiler.model.dso import Dso, DsoKind
from profiler.model.function import NameSource
from profiler.model.symbols import DsoSymbols
from symbolize.demangle import demangle, split_suffix
from symbolize.elf.image import parse_image
from symbolize.locate import Locator
from symbolize.symbolizer import Symbolizer

UNKNOWN = "??"


@dataclass(frozen=True, slots=True)
class ToolFrame:
    """``name`` as the tool prints it without demangling; ``line`` 0 = unknown."""

    name: str
    file: str
    line: int


Chain = list[ToolFrame]  # innermost first


def text_addresses(program: Path, count: int, seed: int) -> UInt64Column:
    """Random link addresses in .text, ascending, each at most once."""
    text = parse_image(program.read_bytes(), str(program)).sections[".text"]
    chosen = random.Random(seed).sample(range(text.size), min(count, text.size))
    return np.array(sorted(chosen), np.uint64) + np.uint64(text.link_address)


def addr2line_chains(program: Path, addresses: UInt64Column) -> list[Chain]:
    lines = _run("addr2line", program, addresses, "-a", "-i", "-f").splitlines()
    chains: list[Chain] = []
    position = 0
    while position < len(lines):
        if lines[position].startswith("0x"):
            chains.append([])
            position += 1
            continue
        file, _, number = lines[position + 1].split(" (discriminator")[0].rpartition(":")
        chains[-1].append(ToolFrame(lines[position], file, int(number) if number.isdigit() else 0))
        position += 2
    assert len(chains) == len(addresses)
    return chains


def llvm_chains(program: Path, addresses: UInt64Column) -> list[Chain]:
    blocks = _run("llvm-symbolizer", program, addresses, "--no-demangle").split("\n\n")
    chains: list[Chain] = []
    for block in blocks[: len(addresses)]:
        lines = block.strip("\n").split("\n")
        places = [line.rsplit(":", 2) for line in lines[1::2]]
        chains.append([ToolFrame(name, file, int(number)) for name, (file, number, _) in zip(lines[::2], places, strict=True)])
    assert len(chains) == len(addresses)
    return chains


def _run(tool: str, program: Path, addresses: UInt64Column, *options: str) -> str:
    path = shutil.which(tool)
    if path is None:
        pytest.skip(f"{tool} is not installed")
    asked = "".join(f"0x{address:x}\n" for address in addresses.tolist())
    command = [path, "-e", str(program), *options]
    return subprocess.run(command, input=asked, check=True, capture_output=True, text=True, errors="replace").stdout


def symbolized(program: Path, addresses: UInt64Column, symbolizer: Symbolizer | None = None) -> DsoSymbols:
    image = parse_image(program.read_bytes(), str(program))
    dso = Dso(str(program), image.build_id, DsoKind.FILE)
    offsets = image.file_offsets(addresses)
    return (symbolizer or Symbolizer(Locator(), None)).symbolize(dso, offsets, np.zeros(len(offsets), np.bool_))


@dataclass(frozen=True, slots=True)
class Disagreement:
    address: int
    ours: Chain
    theirs: tuple[Chain, ...]


@dataclass(frozen=True, slots=True)
class Agreement:
    """``compared``: addresses of which a tool or the symbolizer knows a source file."""

    compared: int
    disagreements: tuple[Disagreement, ...]

    @property
    def share(self) -> float:
        return 1 - len(self.disagreements) / max(self.compared, 1)

    def report(self) -> str:
        return "\n".join(
            f"0x{each.address:x}\n  ours {each.ours}\n  " + "\n  ".join(map(str, each.theirs)) for each in self.disagreements
        )


def compare(program: Path, addresses: UInt64Column, symbols: DsoSymbols) -> Agreement:
    """Function, file:line and the whole chain at each address against both tools; one that agrees is enough."""
    aliases = symbol_addresses(program)
    tools = (addr2line_chains(program, addresses), llvm_chains(program, addresses))
    compared, different = 0, []
    for row, address in enumerate(addresses.tolist()):
        ours, sources = _our_chain(symbols, row)
        theirs = tuple(chains[row] for chains in tools)
        if all(frame.file in (UNKNOWN, "") for chain in (ours, *theirs) for frame in chain):
            continue
        compared += 1
        if not any(_equal(ours, sources, chain, aliases) for chain in theirs):
            different.append(Disagreement(address, ours, theirs))
    return Agreement(compared, tuple(different))


def symbol_addresses(program: Path) -> dict[str, str]:
    """{symbol: address} of ``nm``: names at one address are aliases."""
    listing = subprocess.run(["nm", str(program)], check=True, capture_output=True, text=True, errors="replace").stdout
    rows = [line.split() for line in listing.splitlines()]
    return {row[2].partition("@")[0]: row[0] for row in rows if len(row) == 3}


def _our_chain(symbols: DsoSymbols, row: int) -> tuple[Chain, list[NameSource]]:
    chains = symbols.chains
    frames, sources = [], []
    for place in range(int(chains.start[row]), int(chains.start[row + 1])):
        function = symbols.functions[int(chains.function[place])]
        file = symbols.files[int(chains.file[place])] if chains.file[place] >= 0 else UNKNOWN
        frames.append(ToolFrame(function.linkage_name, file, int(chains.line[place])))
        sources.append(function.name_source)
    return frames, sources


def _equal(ours: Chain, sources: Sequence[NameSource], theirs: Chain, aliases: dict[str, str]) -> bool:
    if len(ours) != len(theirs):
        return False
    return all(
        _same_place(mine, other) and _same_name(mine.name, source, other.name, aliases)
        for mine, source, other in zip(ours, sources, theirs, strict=True)
    )


def _same_place(mine: ToolFrame, other: ToolFrame) -> bool:
    if mine.line != other.line:
        return False
    if mine.line == 0:
        return True
    ours, theirs = posixpath.normpath(mine.file), posixpath.normpath(other.file)
    # Both tools put a relative compilation directory in front of itself.
    return theirs == ours or theirs.endswith("/" + ours)


def _same_name(mine: str, source: NameSource, other: str, aliases: dict[str, str]) -> bool:
    if source == NameSource.UNRESOLVED:
        return other == UNKNOWN
    if source in (NameSource.QUALIFIED, NameSource.PARTIAL):
        return mine == other or mine.endswith("::" + other)
    core, other_core = split_suffix(mine)[0], split_suffix(other)[0]
    if core == other_core or demangle(core) == demangle(other_core):
        return True
    if core in aliases and aliases[core] == aliases.get(other_core):
        return True
    # The symbol of the outermost frame against the bare DW_AT_name of a function without linkage name.
    return source == NameSource.SYMBOL_TABLE and f"::{other_core}(" in demangle(core).replace("<", "(") + "("
