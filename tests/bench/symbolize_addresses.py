"""Inline chains of link addresses as text, as addr2line and llvm-symbolizer print them; what the benchmark times.

    python tests/bench/symbolize_addresses.py FILE ADDRESSES [--cache DIR] [--seconds]

ADDRESSES is a file of hexadecimal numbers.  With --seconds, prints how long the symbolizer itself took, which is what a report
pays for it: without the start of the interpreter, imports, and the text.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from profiler.model.dso import Dso, DsoKind
from profiler.model.symbols import DsoSymbols
from symbolize.cache import SymbolCache
from symbolize.locate import Locator
from symbolize.symbolizer import Symbolizer

# As of the slotscope command.
GARBAGE_THRESHOLD = 100_000
PIECES_AT_ONCE = 10_000


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("addresses", type=Path)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--seconds", action="store_true")
    arguments = parser.parse_args()
    gc.set_threshold(GARBAGE_THRESHOLD)
    locator = Locator()
    dso = Dso(arguments.file, b"", DsoKind.FILE)
    image = locator.image(dso)
    if image is None:
        raise SystemExit(locator.locate(dso).status)
    addresses = np.array([int(line, 16) for line in arguments.addresses.read_text().split()], np.uint64)
    offsets = image.file_offsets(addresses)
    cache = SymbolCache(arguments.cache) if arguments.cache is not None else None
    started = time.perf_counter()
    recorded = replace(dso, build_id=image.build_id)
    symbols = Symbolizer(locator, cache).symbolize(recorded, offsets, np.zeros(len(offsets), np.bool_))
    if arguments.seconds:
        print(time.perf_counter() - started)
    else:
        sys.stdout.buffer.writelines(chains(symbols))


def chains(symbols: DsoSymbols) -> Iterator[bytes]:
    """The text in pieces: function and place of each frame, innermost first, and an empty line behind each chain.

    Each name and each place is made once: there are far fewer of them than frames.
    """
    found = symbols.chains
    names = [f"{function.name}\n".encode() for function in symbols.functions]
    files = [*symbols.files, "??"]
    is_last = np.zeros(len(found.function), np.int32)
    is_last[found.start[1:] - 1] = 1
    key = np.zeros(len(is_last), np.int64)
    for column in (found.file + 1, found.line, found.column, is_last):
        key = key * (int(column.max(initial=0)) + 1) + column
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    columns = [column[first].tolist() for column in (found.file, found.line, found.column, is_last)]
    places = [f"{files[file]}:{line}:{at}\n".encode() + b"\n" * last for file, line, at, last in zip(*columns, strict=True)]
    pieces = [b""] * (2 * len(place))
    pieces[::2] = map(names.__getitem__, found.function.tolist())
    pieces[1::2] = map(places.__getitem__, place.tolist())
    for start in range(0, len(pieces), PIECES_AT_ONCE):
        yield b"".join(pieces[start : start + PIECES_AT_ONCE])


if __name__ == "__main__":
    main()
