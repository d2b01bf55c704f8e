"""Decodes what is missing of a source map on several processors."""

from __future__ import annotations

import os
import struct
from contextlib import ExitStack
from functools import partial

import numpy as np

from profiler.forked_task import ForkedTask, can_fork
from profiler.model.arrays import UInt64Column
from profiler.model.function import Function, NameSource
from symbolize.cache import decode_functions, decode_source_map, encode_functions, encode_source_map
from symbolize.dwarf.debug_info import DebugInfo
from symbolize.dwarf.source_map import SourceMap, empty_source_map
from symbolize.dwarf.source_map_growth import add_map
from symbolize.dwarf.work_shares import divide
from symbolize.stored_functions import store_functions
from symbolize.symbol_map import FunctionMemo

# More gain little: who divides the work has to put the answers together.
MOST_PROCESSES = 4
_LENGTH = struct.Struct("<q")


def grow(debug_info: DebugInfo, known: SourceMap, addresses: UInt64Column, memo: FunctionMemo) -> SourceMap:
    """``known`` with answers for the link addresses; ``memo`` may learn of functions in them.

    Where there is enough to do, copies of this process each decode some units.  What a copy fails to answer is decoded here.
    """
    processes = min(len(os.sched_getaffinity(0)), MOST_PROCESSES) if can_fork() else 1
    own, *others = divide(known, debug_info.unit_bytes(), addresses, processes)
    with ExitStack() as stack:
        tasks = [_task(stack, debug_info, known, share, memo) for share in others]
        grown = debug_info.extend(known, own)
        if others:
            _functions(grown, memo)  # they will be asked for anyway; the copies make those of theirs
        for task, share in zip(tasks, others, strict=True):
            part = _received(task, memo)
            grown = debug_info.extend(grown, share) if part is None else add_map(grown, part)
    return grown


def _task(
    stack: ExitStack, debug_info: DebugInfo, known: SourceMap, share: UInt64Column, memo: FunctionMemo
) -> ForkedTask | None:
    try:
        return stack.enter_context(ForkedTask(partial(_decoded, debug_info, known, share, memo)))
    except OSError:
        return None


def _decoded(debug_info: DebugInfo, known: SourceMap, share: UInt64Column, memo: FunctionMemo) -> bytes:
    """What the units of ``share`` hold, and its functions: making their keys takes as long as decoding them."""
    found = debug_info.extend(empty_source_map(known.units, len(known.is_outlined), 0), share)
    functions = _functions(found, memo)
    source_map = b"".join(encode_source_map(found))
    return b"".join([_LENGTH.pack(len(source_map)), source_map, *encode_functions(store_functions(functions))])


def _functions(found: SourceMap, memo: FunctionMemo) -> list[Function]:
    """The functions of a map, except those whose names depend on where they are used."""
    table = found.names
    rows = np.flatnonzero(table.source != NameSource.PARTIAL)
    linkage_name = table.linkage_name[rows]
    texts = found.strings.texts(np.where(linkage_name >= 0, linkage_name, table.name[rows]))
    sources = tuple(NameSource)
    return [memo.function(text, sources[source]) for text, source in zip(texts, table.source[rows].tolist(), strict=True)]


def _received(task: ForkedTask | None, memo: FunctionMemo) -> SourceMap | None:
    data = task.answer() if task is not None else None
    if not data:
        return None
    (length,) = _LENGTH.unpack_from(data)
    behind = _LENGTH.size + length
    functions = decode_functions(data[behind:])
    if functions is not None:
        memo.add(functions)
    return decode_source_map(data[_LENGTH.size : behind])
