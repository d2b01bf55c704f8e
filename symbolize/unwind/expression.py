"""DWARF expressions of call frame information, evaluated for many frames at once (DWARF 5, 2.5 and 6.4.2)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from profiler.model.arrays import BoolColumn, UInt64Column
from profiler.model.quick_dataclass import dataclass
from symbolize.elf.dwarf_encoding import sleb128, uleb128

_LIT0, _LIT31, _BREG0, _BREG31 = 0x30, 0x4F, 0x70, 0x8F
_DEREF, _DROP, _OVER, _PICK, _SWAP, _ROT, _DUP = 0x06, 0x13, 0x14, 0x15, 0x16, 0x17, 0x12
_DEREF_SIZE, _BREGX, _NOP, _PLUS_UCONST = 0x94, 0x92, 0x96, 0x23
_CONSTANT_SIZES = {0x08: (1, False), 0x09: (1, True), 0x0A: (2, False), 0x0B: (2, True)} | {
    0x03: (8, False),
    0x0C: (4, False),
    0x0D: (4, True),
    0x0E: (8, False),
    0x0F: (8, True),
}
_CONSTU, _CONSTS = 0x10, 0x11
_STACK_LIMIT = 64

# A register's values for the frames in question, or None when they are not known.
RegisterSource = Callable[[int], UInt64Column | None]
MemorySource = Callable[[UInt64Column], tuple[UInt64Column, BoolColumn]]


@dataclass(frozen=True, slots=True)
class FrameInputs:
    """What an expression may refer to.  ``count``: number of frames."""

    count: int
    register: RegisterSource
    memory: MemorySource


class UnsupportedExpressionError(Exception):
    """The expression is malformed, uses what frames do not know, or an operation that does not occur in frames."""


def _signed_compare(compare: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Callable[..., UInt64Column]:
    return lambda a, b: compare(a.view(np.int64), b.view(np.int64)).astype(np.uint64)


def _shifted(shift: Callable[..., UInt64Column]) -> Callable[[UInt64Column, UInt64Column], UInt64Column]:
    return lambda a, b: np.where(b < 64, shift(a, np.minimum(b, np.uint64(63))), np.uint64(0))


_BINARY: dict[int, Callable[[UInt64Column, UInt64Column], UInt64Column]] = {
    0x1A: np.bitwise_and,
    0x1C: np.subtract,
    0x1E: np.multiply,
    0x21: np.bitwise_or,
    0x22: np.add,
    0x24: _shifted(np.left_shift),
    0x25: _shifted(np.right_shift),
    0x26: lambda a, b: (a.view(np.int64) >> np.minimum(b, np.uint64(63)).astype(np.int64)).view(np.uint64),
    0x27: np.bitwise_xor,
    0x29: _signed_compare(np.equal),
    0x2A: _signed_compare(np.greater_equal),
    0x2B: _signed_compare(np.greater),
    0x2C: _signed_compare(np.less_equal),
    0x2D: _signed_compare(np.less),
    0x2E: _signed_compare(np.not_equal),
}
_UNARY: dict[int, Callable[[UInt64Column], UInt64Column]] = {
    0x19: lambda a: np.abs(a.view(np.int64)).view(np.uint64),
    0x1F: lambda a: (-a.view(np.int64)).view(np.uint64),
    0x20: np.bitwise_not,
}


def registers_used(expression: bytes) -> frozenset[int]:
    """Registers that ``expression`` refers to; every register when it cannot be decoded."""
    seen: set[int] = set()
    zero = np.zeros(1, np.uint64)

    def register(number: int) -> UInt64Column:
        seen.add(number)
        return zero

    try:
        evaluate(expression, FrameInputs(1, register, lambda _: (zero, np.ones(1, np.bool_))))
    except UnsupportedExpressionError:
        return frozenset(range(32))
    return frozenset(seen)


def evaluate(expression: bytes, inputs: FrameInputs, initial: UInt64Column | None = None) -> tuple[UInt64Column, BoolColumn]:
    """(value per frame, could all of its memory be read).

    ``initial``: what lies on the stack before the first operation (the CFA, for a register's rule).  Raises
    ``UnsupportedExpressionError`` for what cannot be evaluated at all.
    """
    stack: list[UInt64Column] = [] if initial is None else [initial]
    readable = np.ones(inputs.count, np.bool_)
    position = 0
    try:
        while position < len(expression):
            position = _operate(expression, position, inputs, stack, readable)
            if len(stack) > _STACK_LIMIT:
                raise UnsupportedExpressionError("stack too deep")
        return stack[-1], readable
    except IndexError:
        raise UnsupportedExpressionError("operands missing") from None


def _operate(code: bytes, position: int, inputs: FrameInputs, stack: list[UInt64Column], readable: BoolColumn) -> int:
    """Run the operation at ``position``; the position behind it."""
    operation = code[position]
    position += 1
    if _BREG0 <= operation <= _BREG31 or operation == _BREGX:
        number = operation - _BREG0
        if operation == _BREGX:
            number, position = uleb128(code, position)
        offset, position = sleb128(code, position)
        values = inputs.register(number)
        if values is None:
            raise UnsupportedExpressionError(f"register {number} is not known")
        stack.append(values + np.uint64(offset % 2**64))
    elif operation in _BINARY:
        right = stack.pop()
        stack.append(_BINARY[operation](stack.pop(), right))
    elif operation in _UNARY:
        stack.append(_UNARY[operation](stack.pop()))
    elif operation == _PLUS_UCONST:
        addend, position = uleb128(code, position)
        stack.append(stack.pop() + np.uint64(addend % 2**64))
    elif operation in (_DEREF, _DEREF_SIZE):
        size = 8
        if operation == _DEREF_SIZE:
            size, position = code[position], position + 1
        readable &= _dereference(size, inputs, stack)
    elif operation != _NOP:
        position = _push_or_reorder(code, position, operation, inputs.count, stack)
    return position


def _dereference(size: int, inputs: FrameInputs, stack: list[UInt64Column]) -> BoolColumn:
    """Replace the address on top by the ``size`` bytes there; which of them could be read."""
    if size not in (1, 2, 4, 8):
        raise UnsupportedExpressionError(f"read of {size} bytes")
    value, is_readable = inputs.memory(stack.pop())
    stack.append(value & np.uint64(2 ** (8 * size) - 1))
    return is_readable


def _push_or_reorder(code: bytes, position: int, operation: int, count: int, stack: list[UInt64Column]) -> int:
    if operation in (_DUP, _DROP, _OVER, _PICK, _SWAP, _ROT):
        return _reorder(code, position, operation, stack)
    if _LIT0 <= operation <= _LIT31:
        constant = operation - _LIT0
    elif operation in _CONSTANT_SIZES:
        size, is_signed = _CONSTANT_SIZES[operation]
        if position + size > len(code):
            raise IndexError(position)
        constant = int.from_bytes(code[position : position + size], "little", signed=is_signed)
        position += size
    elif operation == _CONSTU:
        constant, position = uleb128(code, position)
    elif operation == _CONSTS:
        constant, position = sleb128(code, position)
    else:
        raise UnsupportedExpressionError(f"operation {operation:#x}")
    stack.append(np.full(count, constant % 2**64, np.uint64))
    return position


def _reorder(code: bytes, position: int, operation: int, stack: list[UInt64Column]) -> int:
    if operation == _PICK:
        depth = code[position]
        stack.append(stack[-1 - depth])
        return position + 1
    if operation == _DUP:
        stack.append(stack[-1])
    elif operation == _DROP:
        stack.pop()
    elif operation == _OVER:
        stack.append(stack[-2])
    elif operation == _SWAP:
        stack[-1], stack[-2] = stack[-2], stack[-1]
    else:
        stack[-3], stack[-2], stack[-1] = stack[-1], stack[-3], stack[-2]
    return position
