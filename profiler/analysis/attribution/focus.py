"""``--focus`` and ``--ignore``: stacks chosen by what is on them, as pprof does."""

from __future__ import annotations

import re

import numpy as np

from profiler.analysis.attribution.logical_stacks import LogicalStacks
from profiler.analysis.attribution.stack_patterns import compile_pattern, stacks_through
from profiler.model.arrays import BoolColumn
from profiler.model.symbols import SymbolizedCapture


def focused(symbolized: SymbolizedCapture, stacks: LogicalStacks, focus: str, ignore: str) -> BoolColumn:
    """bool[rows]: stacks with a frame that matches ``focus`` and without one that matches ``ignore`` ("" = no filter).

    A pattern is searched in a frame's shown name, canonical names, source file and DSO name.
    """
    admitted = np.ones(len(stacks), np.bool_)
    if focus:
        admitted &= _passing(symbolized, stacks, compile_pattern(focus, "--focus"))
    if ignore:
        admitted &= ~_passing(symbolized, stacks, compile_pattern(ignore, "--ignore"))
    return admitted


def _passing(symbolized: SymbolizedCapture, stacks: LogicalStacks, pattern: re.Pattern[str]) -> BoolColumn:
    functions = np.array(
        [any(pattern.search(name) for name in (f.name, f.key, f.trait_key) if name) for f in symbolized.functions], np.bool_
    )
    files = np.array([*(bool(pattern.search(path)) for path in symbolized.files), False], np.bool_)
    dsos = np.array([*(bool(pattern.search(dso.name)) for dso in symbolized.capture.dsos), False], np.bool_)
    places = stacks.places
    hit = functions[places.function] | files[places.file] | dsos[places.dso]
    return stacks_through(stacks, hit[stacks.place])
