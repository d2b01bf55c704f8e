"""Unwinding rules kept between runs: equal to those compiled anew, and never taken from a file that is not theirs."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from profiler.model.arrays import Int64Column
from symbolize.cache import SymbolCache
from symbolize.elf.image import ElfImage, parse_image
from symbolize.unwind.code_rules import CodeRules
from symbolize.unwind.rule_rows import NO_RULES, NOT_COMPILED, RuleRow
from symbolize.unwind.stored_rules import StoredRules, file_layout
from symbolize.unwind_cache import UnwindRuleCache, decode_rules, encode_rules

DSO = 3


def library() -> ElfImage:
    """The file of the interpreter's standard C library: thousands of functions, some in assembler."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.split()[-1]
        if "/libc.so" in path or "/libc-" in path:
            return parse_image(Path(path).read_bytes(), path)
    pytest.skip(f"{sys.executable} is linked statically")


@pytest.fixture(scope="module")
def image() -> ElfImage:
    found = library()
    assert found.build_id
    return found


def code_offsets(image: ElfImage, step: int) -> Int64Column:
    first, end = (
        int(bound)
        for bound in next((s.file_offset, s.file_offset + s.file_size) for s in image.load_segments if s.is_executable)
    )
    return np.arange(first, end, step)


def rules_at(code: CodeRules, offsets: Int64Column) -> list[RuleRow | None]:
    numbers = code.rows(np.full(len(offsets), DSO, np.int32), offsets.astype(np.uint64)).tolist()
    return [None if number == NO_RULES else code.row(number) for number in numbers]


class Counting(UnwindRuleCache):
    """Counts what is stored."""

    stored = 0

    def store_rules(self, build_id: bytes, rules: StoredRules) -> bool:
        self.stored += 1
        return super().store_rules(build_id, rules)


def test_rules_from_the_cache_are_those_that_are_compiled(image: ElfImage, tmp_path: Path) -> None:
    half, all_offsets = code_offsets(image, 509)[::2], code_offsets(image, 509)
    cache = Counting(SymbolCache(tmp_path))
    first = CodeRules(lambda row: image, cache)
    expected_half = rules_at(first, half)
    first.keep()
    expected = rules_at(CodeRules(lambda row: image), all_offsets)
    assert sum(rule is not None for rule in expected) > 1000
    again = CodeRules(lambda row: image, cache)
    # Rows are numbered by what was asked before: another DSO came first.
    again.rows(np.full(5, DSO + 1, np.int32), np.arange(0x30000, 0x30005).astype(np.uint64))
    assert rules_at(again, half) == expected_half
    assert rules_at(again, all_offsets) == expected
    again.keep()
    third = CodeRules(lambda row: image, cache)
    assert rules_at(third, all_offsets) == expected
    stored = cache.stored
    without = [offset for offset, rule in zip(all_offsets.tolist(), expected, strict=True) if rule is None]
    assert without
    assert cache.stored == stored
    third_again = cache.load_rules(image.build_id)
    assert third_again is not None
    assert len(third_again.rows) < len(third_again.pages)


def test_rules_that_another_process_compiled_are_taken_over_and_kept(image: ElfImage, tmp_path: Path) -> None:
    offsets = code_offsets(image, 509)
    expected = rules_at(CodeRules(lambda row: image), offsets)
    cache = Counting(SymbolCache(tmp_path))
    here, there = CodeRules(lambda row: image, cache), CodeRules(lambda row: image, cache)
    rules_at(here, offsets[::2])
    rules_at(there, offsets[1::2])
    here.add_rules(there.new_rules())
    assert rules_at(here, offsets) == expected
    here.keep()
    again = CodeRules(lambda row: image, cache)
    assert rules_at(again, offsets) == expected
    assert not again.new_rules()  # all of them were in the cache


def test_a_file_arranged_otherwise_is_compiled_anew(image: ElfImage, tmp_path: Path) -> None:
    offsets = code_offsets(image, 4001)
    cache = UnwindRuleCache(SymbolCache(tmp_path))
    first = CodeRules(lambda row: image, cache)
    expected = rules_at(first, offsets)
    first.keep()
    stored = cache.load_rules(image.build_id)
    assert stored is not None
    wrong = replace(stored, layout=stored.layout + 1, rows=(stored.rows[0],) * len(stored.rows))
    assert cache.store_rules(image.build_id, wrong)
    assert rules_at(CodeRules(lambda row: image, cache), offsets) == expected


def test_places_without_rules_are_not_kept(image: ElfImage, tmp_path: Path) -> None:
    cache = UnwindRuleCache(SymbolCache(tmp_path))
    code = CodeRules(lambda row: image, cache)
    offsets = code_offsets(image, 61)
    without = np.array([o for o, rule in zip(offsets.tolist(), rules_at(code, offsets), strict=True) if rule is None])
    code.keep()
    stored = cache.load_rules(image.build_id)
    assert stored is not None
    assert stored.rule.max() == len(stored.rows)
    assert all(row.cfa is not None for row in stored.rows)
    assert NOT_COMPILED not in (stored.length.tolist())
    assert rules_at(CodeRules(lambda row: image, cache), without) == [None] * len(without)


EXPRESSIONS = StoredRules(
    layout=np.array([0, 4096, 100, 1], np.int64),
    pages=np.array([0, 2], np.int64),
    length=np.array([500, 12, 512], np.int64),
    rule=np.array([0, 2, 1], np.int32),
    rows=(
        RuleRow((7, 16), ((6, (2, -16)), (16, (2, -8))), False, 16),
        RuleRow((-1, b"\x77\x08\xff"), ((3, (5, b"\x76\x78")), (16, (0, 0))), True, 16),
    ),
)


def test_every_kind_of_rule_survives() -> None:
    decoded = decode_rules(b"".join(encode_rules(EXPRESSIONS)), {})
    assert decoded is not None
    assert decoded.rows == EXPRESSIONS.rows
    for name in ("layout", "pages", "length", "rule"):
        assert getattr(decoded, name).tolist() == getattr(EXPRESSIONS, name).tolist()


def test_damage_is_as_good_as_absence(tmp_path: Path) -> None:
    whole = b"".join(encode_rules(EXPRESSIONS))
    for position in range(len(whole)):
        assert decode_rules(whole[:position], {}) is None
        flipped = bytearray(whole)
        flipped[position] ^= 0x41
        assert decode_rules(bytes(flipped), {}) is None
    cache = UnwindRuleCache(SymbolCache(tmp_path))
    assert cache.load_rules(b"\x12\x34") is None
    assert not cache.store_rules(b"", EXPRESSIONS)


@pytest.mark.parametrize(
    "wrong",
    [
        replace(EXPRESSIONS, rule=np.array([0, 3, 1], np.int32)),
        replace(EXPRESSIONS, rule=np.array([0, -1, 1], np.int32)),
        replace(EXPRESSIONS, length=np.array([500, 12, 511], np.int64)),
        replace(EXPRESSIONS, length=np.array([1024, 12, -12], np.int64)),
        replace(EXPRESSIONS, pages=np.array([2, 0], np.int64)),
        replace(EXPRESSIONS, pages=np.array([-1, 0], np.int64)),
        replace(EXPRESSIONS, pages=np.array([0], np.int64)),
    ],
    ids=["row", "negative row", "too short", "negative length", "order", "negative page", "too few pages"],
)
def test_numbers_that_lead_outside_are_refused(wrong: StoredRules) -> None:
    assert decode_rules(b"".join(encode_rules(wrong)), {}) is None


def test_the_layout_tells_files_apart(image: ElfImage) -> None:
    layout = file_layout(image)
    assert len(layout) == 4 * len(image.load_segments)
    assert layout.tolist() == file_layout(image).tolist()
