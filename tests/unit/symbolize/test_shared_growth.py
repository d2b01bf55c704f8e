"""Decoding in several processes gives what decoding in one gives."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from profiler.forked_task import ForkedTask
from support.elf_programs import load_image
from support.source_maps import described
from support.symbol_programs import CXX_VARIANTS, build_cxx
from symbolize import shared_growth
from symbolize.dwarf import work_shares
from symbolize.dwarf.debug_info import DebugInfo
from symbolize.dwarf.intervals import Intervals
from symbolize.dwarf.sections import DwarfSections, read_sections
from symbolize.dwarf.source_map import SourceMap, empty_source_map
from symbolize.symbol_map import FunctionMemo

Prepared = tuple[DwarfSections, np.ndarray[tuple[int], np.dtype[np.uint64]]]


@pytest.fixture(name="prepared")
def several_processes_for_little_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Prepared:
    monkeypatch.setattr(work_shares, "SMALLEST_SHARE_NS", 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 2})
    image = load_image(build_cxx(tmp_path, CXX_VARIANTS["O2-dwarf5"]))
    contents = read_sections(image)
    assert contents is not None
    text = image.sections[".text"]
    return contents, np.arange(text.link_address, text.link_address + text.size, 7).astype(np.uint64)


def grown_alone(prepared: Prepared) -> SourceMap:
    contents, addresses = prepared
    info = DebugInfo(contents)
    return info.extend(info.empty_map(), addresses)


def assert_equal_answers(found: SourceMap, wanted: SourceMap, prepared: Prepared) -> None:
    for address in prepared[1].tolist():
        assert described(found, address) == described(wanted, address)
    assert len(found.unanswered(prepared[1])) == 0
    assert found.is_outlined.tolist() == wanted.is_outlined.tolist()
    assert (found.left_out, found.skeletons) == (wanted.left_out, wanted.skeletons)
    assert found.covered.lookup(prepared[1]).max() < len(found.functions.die)


def test_several_processes_find_what_one_finds(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    contents, addresses = prepared
    answers: list[int] = []
    answer = ForkedTask.answer

    def counted(task: ForkedTask) -> bytes | None:
        data = answer(task)
        answers.append(len(data or b""))
        return data

    monkeypatch.setattr(ForkedTask, "answer", counted)
    info, memo = DebugInfo(contents), FunctionMemo()
    found = shared_growth.grow(info, info.empty_map(), addresses, memo)
    assert len(answers) >= 1
    assert min(answers) > 0
    assert_equal_answers(found, grown_alone(prepared), prepared)


def test_what_was_known_before_stays(prepared: Prepared) -> None:
    contents, addresses = prepared
    info = DebugInfo(contents)
    # Some answers of one unit: it is outlined, and its other addresses are for this process.
    known = info.extend(info.empty_map(), addresses[: len(addresses) // 5 : 2])
    found = shared_growth.grow(info, known, addresses, FunctionMemo())
    assert_equal_answers(found, grown_alone(prepared), prepared)


def test_what_a_copy_fails_to_answer_is_decoded_here(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    contents, addresses = prepared
    here = os.getpid()
    encode = shared_growth.encode_source_map

    def dying(source_map: SourceMap) -> list[bytes]:
        if os.getpid() != here:
            os._exit(3)
        return encode(source_map)

    monkeypatch.setattr(shared_growth, "encode_source_map", dying)
    info = DebugInfo(contents)
    found = shared_growth.grow(info, info.empty_map(), addresses, FunctionMemo())
    assert_equal_answers(found, grown_alone(prepared), prepared)


def test_without_further_processes_all_is_decoded_here(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> int:
        raise BlockingIOError

    monkeypatch.setattr(os, "fork", refused)
    contents, addresses = prepared
    info = DebugInfo(contents)
    found = shared_growth.grow(info, info.empty_map(), addresses, FunctionMemo())
    assert_equal_answers(found, grown_alone(prepared), prepared)


def test_functions_of_other_processes_are_those_made_here(prepared: Prepared) -> None:
    contents, addresses = prepared
    info, shared, alone = DebugInfo(contents), FunctionMemo(), FunctionMemo()
    found = shared_growth.grow(info, info.empty_map(), addresses, shared)
    expected = {name: found.strings.text(name) for name in found.names.linkage_name.tolist() if name >= 0}
    assert len(expected) > 10
    for name in expected.values():
        for source in (shared_growth.NameSource.LINKAGE_NAME, shared_growth.NameSource.SYMBOL_TABLE):
            assert shared.function(name, source) == alone.function(name, source)


def test_units_are_divided_whole_and_little_work_not_at_all() -> None:
    """Four units of 0x100 bytes of code at 0x1000, 0x1100, ...; the second one is outlined."""
    start = np.arange(0x1000, 0x1500, 0x100, dtype=np.uint64)
    known = empty_source_map(Intervals(start, np.array([0, 1, 2, 3, -1], np.int32)), 4, 0)
    known.is_outlined[1] = True
    addresses = np.arange(0x0FF0, 0x1500, 0x10, dtype=np.uint64)
    inside = addresses[(addresses >= 0x1000) & (addresses < 0x1400)].tolist()
    (only,) = work_shares.divide(known, np.full(4, 1_000), addresses, 4)
    assert only.tolist() == inside
    shares = work_shares.divide(known, np.full(4, 100_000_000), addresses, 3)
    assert sorted(address for share in shares for address in share.tolist()) == inside
    units = [{(address - 0x1000) // 0x100 for address in share.tolist()} for share in shares]
    assert [len(each) for each in units] == [2, 1, 1]
    assert units[0] >= {1}
    assert set.union(*units) == {0, 1, 2, 3}


def test_the_heaviest_share_needs_no_process_and_small_ones_are_not_worth_one() -> None:
    start = np.arange(0x1000, 0x1500, 0x100, dtype=np.uint64)
    known = empty_source_map(Intervals(start, np.array([0, 1, 2, 3, -1], np.int32)), 4, 0)
    addresses = start[:4]

    def divided(*unit_bytes: int) -> list[list[int]]:
        shares = work_shares.divide(known, np.array(unit_bytes), addresses, 2)
        return [[(address - 0x1000) // 0x100 for address in share.tolist()] for share in shares]

    large, small = 100_000_000, 10
    assert divided(large, small, small, small) == [[0, 1, 2, 3]]
    assert divided(small, small, small, large) == [[0, 1, 2, 3]]
    first, second = divided(large, small, small, large)
    assert (0 in first, 3 in second) == (True, True)
    assert divided(small, large, large * 2, small) == [[2, 3], [0, 1]]
