"""FDEs compiled side by side against the interpreter, which is itself checked against readelf."""

from __future__ import annotations

import random

import numpy as np
import pytest

from profiler.errors import FormatError
from support.collected_garbage import unreachable_objects
from support.elf_programs import load_image, system_library
from symbolize.elf.call_frame_index import CallFrameIndex, call_frame_indexes
from symbolize.elf.call_frame_program import FrameProgram, frame_rows
from symbolize.elf.call_frame_section import CallFrameSection
from symbolize.unwind.batch_compiler import CompiledRows, compile_batch


def first_index(name: str) -> CallFrameIndex:
    for make in call_frame_indexes(load_image(system_library(name))):
        index = make()
        if index is not None:
            return index
    raise AssertionError("no call frame information")


def rows_by_fde(compiled: CompiledRows) -> dict[int, list[tuple[int, object, object]]]:
    found: dict[int, list[tuple[int, object, object]]] = {}
    columns = zip(compiled.fde.tolist(), compiled.start.tolist(), compiled.pattern.tolist(), strict=True)
    for fde, start, pattern in columns:
        found.setdefault(fde, []).append((start, *compiled.patterns[pattern]))
    return found


def interpreted(section: CallFrameSection, offset: int) -> list[tuple[int, object, object]]:
    fde = section.fde(offset)
    return [(row.start, row.cfa, row.rules) for row in frame_rows(section, fde) if row.start < fde.end]


@pytest.mark.parametrize("name", ["libc.so.6", "libstdc++.so.6", "libm.so.6"])
def test_rows_equal_the_interpreter(name: str) -> None:
    index = first_index(name)
    compiled = rows_by_fde(compile_batch(index.section, FrameProgram(index.section), index.offsets))
    assert len(compiled) > 0.95 * len(index)
    for fde, rows in compiled.items():
        assert rows == interpreted(index.section, int(index.offsets[fde]))


def test_ends_are_those_of_the_code() -> None:
    index = first_index("libc.so.6")
    compiled = compile_batch(index.section, FrameProgram(index.section), index.offsets)
    for fde, end in zip(compiled.fde.tolist()[::50], compiled.code_end.tolist()[::50], strict=True):
        assert index.section.fde(int(index.offsets[fde])).end == end


def test_damaged_sections_give_the_interpreter_s_rows_or_none() -> None:
    index = first_index("libc.so.6")
    generator = random.Random(5)
    compared = 0
    for _ in range(25):
        data = bytearray(index.section.data)
        for _ in range(200):
            data[generator.randrange(len(data))] = generator.randrange(256)
        section = CallFrameSection(memoryview(bytes(data)), index.section.link_address, True, "damaged")
        offsets = index.offsets[generator.randrange(8) :: 8]
        for fde, rows in rows_by_fde(compile_batch(section, FrameProgram(section), offsets)).items():
            assert rows == interpreted(section, int(offsets[fde]))
            compared += 1
    assert compared > 5000


def test_other_sections_are_left_to_the_interpreter() -> None:
    index = first_index("libc.so.6")
    for section in (
        CallFrameSection(index.section.data, 0, False, "debug_frame"),
        CallFrameSection(index.section.data, 2**63, True, "nowhere"),
    ):
        assert not len(compile_batch(section, FrameProgram(section), index.offsets[:10]).fde)


def test_offsets_at_the_end_of_the_section() -> None:
    section = CallFrameSection(memoryview(bytes(40)), 0, True, "zeros")
    compiled = compile_batch(section, FrameProgram(section), np.arange(0, 40, 3, dtype=np.int64))
    assert not len(compiled.fde)
    with pytest.raises(FormatError):
        section.fde(36)


def test_nothing_waits_for_a_collection_of_garbage() -> None:
    """The state of all programs of a library takes MiB, for every window of a long attachment."""
    index = first_index("libm.so.6")
    compile_batch(index.section, FrameProgram(index.section), index.offsets)
    with unreachable_objects() as left:
        compile_batch(index.section, FrameProgram(index.section), index.offsets)
    assert left == []
