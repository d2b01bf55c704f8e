"""Inline chains of link addresses as text, as addr2line and llvm-symbolizer print them; what the benchmark times.

    python tests/bench/symbolize_addresses.py FILE ADDRESSES [--cache DIR] [--seconds]

ADDRESSES is a file of hexadecimal numbers.  With --seconds, prints how long the symbolizer itself took, which is what a report
pays for it: without the start of the interpreter, imports, and the text.
"""

from __future__ import annotations

import argparse
import gc
import itertools
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
        sys.stdout.writelines(chains(symbols))


def chains(symbols: DsoSymbols) -> Iterator[str]:
    """One text per address: function and place of each frame, innermost first, and an empty line."""
    names = [function.name for function in symbols.functions]
    files = [*symbols.files, "??"]
    found = symbols.chains
    columns = (found.function.tolist(), found.file.tolist(), found.line.tolist(), found.column.tolist())
    frames = [f"{names[name]}\n{files[file]}:{line}:{column}\n" for name, file, line, column in zip(*columns, strict=True)]
    start = found.start.tolist()
    for first, last in itertools.pairwise(start):
        yield "".join(frames[first:last]) + "\n"


if __name__ == "__main__":
    main()
