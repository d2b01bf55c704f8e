"""Was a binary built with frame pointers?  Decided from call frame information and calls in the code."""

from __future__ import annotations

import numpy as np

from profiler.errors import FormatError
from profiler.model.arrays import UInt8Column
from symbolize.elf.call_frame_index import CallFrameIndex, call_frame_indexes
from symbolize.elf.call_frame_program import CFA_BY_EXPRESSION, FrameRow, frame_rows
from symbolize.elf.call_frame_section import FrameDescription
from symbolize.elf.image import ElfImage, Segment
from symbolize.elf.layout import EM_X86_64

FRAME_POINTER_SHARE = 0.95

_SAMPLED_FDES = 600
_SMALLEST_FUNCTION_BYTES = 32
_LARGEST_FUNCTION_BYTES = 1 << 16  # beyond, the call is searched in the beginning only
_RBP = 6
_DW_OP_BREG6 = 0x76
_CALL, _CALL_BYTES = 0xE8, 5


def keeps_frame_pointers(image: ElfImage) -> bool:
    """Do the functions of ``image`` keep frame pointers?

    A function keeps one if some row of its FDE computes the CFA from RBP.  Asked are up to 600 FDEs, evenly spaced, that have
    at least 32 bytes and call other code of the image directly: compilers may leave the frame pointer out of leaf functions
    in every build.  True if at least 95 % of them keep one (builds with frame pointers reach 99 %, those without stay below
    25 %), and so does ``main``, where a symbol tells its place and it has a frame at all: a small Rust program without frame
    pointers consists almost wholly of the standard library, which is shipped with them.  Where no function calls another, all
    of them are asked.  False without call frame information.
    """
    segment = next((s for s in image.load_segments if s.is_executable), None)
    if image.machine != EM_X86_64 or segment is None:
        return False
    for make_index in call_frame_indexes(image):
        index = make_index()
        if index is not None:
            return _most_keep(image, segment, index) and _main_keeps(image, index)
    return False


def _most_keep(image: ElfImage, segment: Segment, index: CallFrameIndex) -> bool:
    code = np.frombuffer(image.data, np.uint8)[segment.file_offset : segment.file_offset + segment.file_size]
    asked = {True: 0, False: 0}
    keeping = {True: 0, False: 0}
    for offset in index.offsets[:: max(1, len(index) // _SAMPLED_FDES)].tolist():
        function = _function(index, offset)
        if function is not None and function[0].end - function[0].start >= _SMALLEST_FUNCTION_BYTES:
            calls = _calls(code, segment.link_address, function[0])
            asked[calls] += 1
            keeping[calls] += any(map(_uses_frame_pointer, function[1]))
    if asked[True]:
        return keeping[True] >= FRAME_POINTER_SHARE * asked[True]
    return asked[False] > 0 and keeping[False] >= FRAME_POINTER_SHARE * asked[False]


def _calls(code: UInt8Column, link_address: int, fde: FrameDescription) -> bool:
    """Does the function hold what looks like ``call rel32`` into the same segment (``code``, at ``link_address``)."""
    first = fde.start - link_address
    last = min(fde.end - link_address, first + _LARGEST_FUNCTION_BYTES) - _CALL_BYTES
    if first < 0 or last < first or last + _CALL_BYTES > len(code):
        return False
    at = first + np.flatnonzero(code[first : last + 1] == _CALL)
    displacement = np.zeros(len(at), np.uint32)
    for byte in range(4):
        displacement |= code[at + 1 + byte].astype(np.uint32) << np.uint32(8 * byte)
    target = at + _CALL_BYTES + displacement.view(np.int32)
    return bool(np.any((target >= 0) & (target < len(code))))


def _function(index: CallFrameIndex, offset: int) -> tuple[FrameDescription, list[FrameRow]] | None:
    """The FDE at ``offset`` and its rows if it describes an ordinary function."""
    try:
        fde = index.section.fde(offset)
        return None if fde.common.is_signal_frame else (fde, frame_rows(index.section, fde))
    except FormatError:
        return None


def _uses_frame_pointer(row: FrameRow) -> bool:
    if row.cfa is None:
        return False
    register, value = row.cfa
    # A function that realigns its stack finds the CFA through RBP, and the chain of frame pointers stays whole.
    is_by_pointer = register == CFA_BY_EXPRESSION and isinstance(value, bytes) and value[:1] == bytes([_DW_OP_BREG6])
    return register == _RBP or is_by_pointer


def _main_keeps(image: ElfImage, index: CallFrameIndex) -> bool:
    """True as well where there is no ``main``, or it is a mere jump to another function."""
    try:
        symbols = image.symbol_table()
    except FormatError:
        return True
    row = symbols.row_named("main")
    if row < 0:
        return True
    candidate = int(index.candidates(np.array([symbols.start(row)], np.int64))[0])
    function = _function(index, int(index.offsets[candidate])) if candidate >= 0 else None
    if function is None or not function[0].start <= symbols.start(row) < function[0].end:
        return True
    return len(function[1]) == 1 or any(map(_uses_frame_pointer, function[1]))
