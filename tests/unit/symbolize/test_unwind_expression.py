"""DWARF expressions against hand arithmetic (DWARF 5, 2.5)."""

from __future__ import annotations

import numpy as np
import pytest

from profiler.model.arrays import BoolColumn, UInt64Column
from symbolize.unwind.expression import FrameInputs, UnsupportedExpressionError, evaluate, registers_used

WORDS = {0x1000: 7, 0x1008: 0x1122334455667788}


def memory(addresses: UInt64Column) -> tuple[UInt64Column, BoolColumn]:
    values = np.array([WORDS.get(int(address), 0) for address in addresses], np.uint64)
    return values, np.array([int(address) in WORDS for address in addresses])


def inputs(**registers: int) -> FrameInputs:
    numbers = {"rbp": 6, "rsp": 7, "rip": 16}
    known = {numbers[name]: np.array([value], np.uint64) for name, value in registers.items()}
    return FrameInputs(1, known.get, memory)


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("35", 5),  # lit5
        ("08ff", 255),  # const1u
        ("09ff", 2**64 - 1),  # const1s
        ("0afeff", 0xFFFE),
        ("0bfeff", 2**64 - 2),
        ("0cfeffffff", 0xFFFFFFFE),
        ("0dfeffffff", 2**64 - 2),
        ("0eefcdab8967452301", 0x0123456789ABCDEF),
        ("108001", 128),  # constu
        ("117f", 2**64 - 1),  # consts
        ("7708", 0x2008),  # breg7 (rsp) + 8
        ("7678", 0xFF8),  # breg6 (rbp) - 8
        ("920708", 0x2008),  # bregx
        ("7600 06", 7),  # breg6, deref
        ("7608 9402", 0x7788),  # deref_size 2
        ("3331 22", 4),  # 3 + 1
        ("3331 1c", 2),  # 3 - 1
        ("3133 1c", 2**64 - 2),
        ("3334 1e", 12),
        ("3c3a 1a", 8),  # 12 & 10
        ("3c3a 21", 14),
        ("3c3a 27", 6),
        ("3133 24", 8),  # 1 << 3
        ("117f 083f 25", 1),  # -1 >> 63, logical
        ("117c 31 26", 2**64 - 2),  # -4 >> 1, arithmetic
        ("31 0840 24", 0),  # shifted by 64
        ("33 23 8001", 131),  # plus_uconst
        ("117d 19", 3),  # abs
        ("33 1f", 2**64 - 3),  # neg
        ("30 20", 2**64 - 1),  # not
        ("3333 29", 1),
        ("3332 2a", 1),
        ("3333 2b", 0),
        ("117f 31 2d", 1),  # -1 < 1, signed
        ("3332 2c", 0),
        ("3332 2e", 1),
        ("3332 12 22", 4),  # dup
        ("3332 13", 3),  # drop
        ("3332 14", 3),  # over
        ("333231 1502", 3),  # pick 2
        ("3332 16", 3),  # swap
        ("333231 17", 2),  # rot: the second becomes the top
        ("33 96", 3),  # nop
        ("7708 8000 3f 1a 3b 2a 33 24 22", 0x2008),  # the CFA of a PLT stub, before the push
    ],
)
def test_operations(code: str, wanted: int) -> None:
    value, is_readable = evaluate(bytes.fromhex(code), inputs(rbp=0x1000, rsp=0x2000, rip=0x5550))
    assert int(value[0]) == wanted
    assert is_readable.all()


def test_plt_stub_behind_its_push() -> None:
    expression = bytes.fromhex("7708 8000 3f 1a 3b 2a 33 24 22")
    value, _ = evaluate(expression, inputs(rsp=0x2000, rip=0x555B))
    assert int(value[0]) == 0x2010


def test_many_frames_at_once_and_unreadable_memory() -> None:
    frames = FrameInputs(3, {6: np.array([0x1000, 0x1008, 0x9000], np.uint64)}.get, memory)
    value, is_readable = evaluate(bytes.fromhex("7600 06"), frames)
    assert value[:2].tolist() == [7, 0x1122334455667788]
    assert is_readable.tolist() == [True, True, False]


def test_initial_value_is_on_the_stack() -> None:
    value, _ = evaluate(bytes.fromhex("2308"), inputs(), np.array([0x100], np.uint64))
    assert int(value[0]) == 0x108


@pytest.mark.parametrize(
    "code", ["", "22", "31 22", "08", "0c0102", "7700", "a0", "2f0000", "33 9403", "1505", "16", "80", "12" * 3]
)
def test_what_cannot_be_evaluated_is_refused(code: str) -> None:
    with pytest.raises(UnsupportedExpressionError):
        evaluate(bytes.fromhex(code), inputs())


def test_endless_pushing_is_refused() -> None:
    with pytest.raises(UnsupportedExpressionError):
        evaluate(b"\x31" * 1000, inputs())


def test_registers_used() -> None:
    assert registers_used(bytes.fromhex("7708 8000 22")) == {7, 16}
    assert registers_used(bytes.fromhex("7678 06")) == {6}
    assert registers_used(bytes.fromhex("920c00")) == {12}
    assert registers_used(b"\xff") >= set(range(17))
