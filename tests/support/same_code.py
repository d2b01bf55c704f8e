"""One program built twice, with its debug information in two forms: the code is the same, so the answers must be."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from profiler.model.arrays import BoolColumn
from profiler.model.symbols import DsoSymbols
from support.symbol_oracle import Agreement, compare, symbolized, text_addresses
from symbolize.elf.image import parse_image
from symbolize.symbolizer import Symbolizer


def agreement_with_whole(whole: Path, other: Path, symbolizer: Symbolizer | None = None) -> Agreement:
    """What slotscope says of ``other`` against what the tools say of ``whole``, which has the same code, at 2,400 addresses."""
    assert code_of(whole) == code_of(other)
    addresses = text_addresses(whole, 2400, seed=8)
    return compare(whole, addresses, symbolized(other, addresses, symbolizer))


def code_of(program: Path) -> tuple[int, bytes]:
    """(link address, bytes) of .text."""
    image = parse_image(program.read_bytes(), str(program))
    return image.sections[".text"].link_address, bytes(image.section_bytes(".text") or b"")


def has_inlined_frames(symbols: DsoSymbols) -> BoolColumn:
    inlined: BoolColumn = np.diff(symbols.chains.start) > 1
    return inlined
