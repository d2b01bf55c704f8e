"""Unwinding with RSP, RBP and RIP alone, which is all that nearly every frame needs: one numpy step per level of the stacks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiler.model.arrays import BoolColumn, Int32Column, Int64Column, UInt8Column, UInt64Column, distinct
from symbolize.unwind.code_rules import CodeRules
from symbolize.unwind.dump_reader import DumpReader, open_dumps
from symbolize.unwind.expression import FrameInputs, UnsupportedExpressionError, evaluate
from symbolize.unwind.fallback import Unruled, follow_frame_pointer
from symbolize.unwind.levels import Level, StackLevels
from symbolize.unwind.registers import RBP, RIP, RSP
from symbolize.unwind.rule_rows import (
    CFA_BY_EXPRESSION_BIT,
    CFA_BY_FRAME_POINTER,
    CFA_BY_OTHER_REGISTER,
    ENDS_THREAD,
    HAS_NO_RULES,
    NEEDS_ALL_REGISTERS,
    POINTER_SAVED_AT_CFA,
    POINTER_SAVED_AT_POINTER,
    RuleColumns,
)
from symbolize.unwind.stacks import AddressMap, EndReason, StackDumps

_NOT_REFUSED = 255
_POINTER_IS_SAVED = POINTER_SAVED_AT_CFA | POINTER_SAVED_AT_POINTER


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Frames:
    """The current frame of every sample still being unwound; columns of equal length.

    ``sample``: row of the dumps.  ``pc``: the exact address; the frames of one level are all innermost ones or all callers.
    """

    depth: int
    sample: Int64Column
    address_space: Int64Column
    pc: UInt64Column
    sp: UInt64Column
    bp: UInt64Column
    dump: DumpReader


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Place:
    """Where the frames' code lies, by the address to look up."""

    dso: Int32Column
    lookup_offset: UInt64Column


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _CanonicalFrames:
    """CFA and rule row of every frame.  ``refusal``: why the CFA could not be computed (``EndReason``), or ``_NOT_REFUSED``."""

    row: Int32Column
    flags: UInt8Column
    cfa: UInt64Column
    refusal: UInt8Column


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Callers:
    """The registers of the callers; ``is_readable``: the return address was in the dump."""

    return_address: UInt64Column
    is_readable: BoolColumn
    stack_pointer: UInt64Column
    frame_pointer: UInt64Column


class QuickWalk:
    """Walks one batch of dumps; what needs more registers is left to ``FullWalk``."""

    def __init__(self, dumps: StackDumps, address_map: AddressMap, code: CodeRules) -> None:
        self._dumps = dumps
        self._map = address_map
        self._code = code
        self._set_aside: list[Int64Column] = []

    def run(self, samples: Int64Column, levels: StackLevels, max_depth: int) -> Int64Column:
        """Unwind ``samples`` into ``levels``.  Returned are the samples that need all registers: what ``levels`` holds of them
        is the beginning only."""
        frames = self._innermost(samples)
        for _ in range(max_depth):
            if not len(frames.sample):
                break
            frames = self._level(frames, levels)
        levels.end(frames.sample, EndReason.DEPTH_LIMIT)
        return np.concatenate(self._set_aside) if self._set_aside else np.zeros(0, np.int64)

    def _innermost(self, samples: Int64Column) -> _Frames:
        dumps = self._dumps
        return _Frames(
            depth=0,
            sample=samples,
            address_space=dumps.address_space[samples],
            pc=dumps.registers[samples, RIP],
            sp=dumps.registers[samples, RSP],
            bp=dumps.registers[samples, RBP],
            dump=open_dumps(dumps, samples),
        )

    def _level(self, frames: _Frames, levels: StackLevels) -> _Frames:
        """Record one level and step to the callers."""
        back = np.uint64(1 if frames.depth else 0)
        dso, lookup = self._map.resolve(frames.address_space, frames.pc - back)
        offset = lookup + back if dso.min() >= 0 else np.where(dso >= 0, lookup + back, frames.pc)
        levels.add(Level(frames.depth, frames.sample, dso, offset, np.full(len(dso), frames.depth > 0)))
        rows = self._code.rows if frames.depth else self._code.rows_at_exact_address
        canonical = self._canonical_frames(frames, rows(dso, lookup))
        callers = _callers(frames, canonical, self._code.columns())
        is_stopped = (callers.return_address == 0) | (canonical.cfa <= frames.sp) | (canonical.refusal != _NOT_REFUSED)
        is_stopped |= (canonical.flags & self._stopping(frames)) != 0
        stopped = np.flatnonzero(is_stopped)
        if len(stopped):
            levels.end(frames.sample[stopped], _reasons(frames, canonical, callers, stopped))
            self._put_aside(frames, canonical, stopped)
            without = stopped[(canonical.flags[stopped] & HAS_NO_RULES) != 0]
            if len(without):
                is_stopped[without] = ~self._fall_back(frames, without, _Place(dso, lookup), callers, levels)
        return _step(frames, callers, np.flatnonzero(~is_stopped))

    def _stopping(self, frames: _Frames) -> int:
        """Flags of rows that this walk cannot follow; other registers are known in the innermost frame only."""
        return ENDS_THREAD | NEEDS_ALL_REGISTERS | HAS_NO_RULES | (CFA_BY_OTHER_REGISTER if frames.depth else 0)

    def _canonical_frames(self, frames: _Frames, row: Int32Column) -> _CanonicalFrames:
        rules = self._code.columns()
        flags = rules.flags[row]
        cfa = np.where(flags & CFA_BY_FRAME_POINTER, frames.bp, frames.sp)
        cfa += rules.cfa_offset[row]
        found = _CanonicalFrames(row, flags, cfa, np.full(len(row), _NOT_REFUSED, np.uint8))
        present = int(np.bitwise_or.reduce(flags))
        if present & CFA_BY_OTHER_REGISTER and not frames.depth:
            self._cfa_by_other_register(frames, found)
        if present & CFA_BY_EXPRESSION_BIT:
            for number in distinct(row[(flags & CFA_BY_EXPRESSION_BIT) != 0]).tolist():
                self._cfa_by_expression(frames, number, found)
        return found

    def _cfa_by_other_register(self, frames: _Frames, found: _CanonicalFrames) -> None:
        rules = self._code.columns()
        selected = np.flatnonzero(found.flags & CFA_BY_OTHER_REGISTER)
        row = found.row[selected]
        register = rules.cfa_register[row]
        found.cfa[selected] = self._dumps.registers[frames.sample[selected], register] + rules.cfa_offset[row]
        found.refusal[selected[~self._dumps.has_register[register]]] = EndReason.NO_CFI

    def _cfa_by_expression(self, frames: _Frames, number: int, found: _CanonicalFrames) -> None:
        selected = np.flatnonzero(found.row == number)
        known = {RSP: frames.sp[selected], RBP: frames.bp[selected], RIP: frames.pc[selected]}
        inputs = FrameInputs(len(selected), known.get, frames.dump.select(selected).read)
        rule = self._code.row(number).cfa
        try:
            found.cfa[selected], is_readable = evaluate(bytes(rule[1]) if rule else b"", inputs)
            found.refusal[selected[~is_readable]] = EndReason.DUMP_LIMIT
        except UnsupportedExpressionError:
            found.refusal[selected] = EndReason.NO_CFI

    def _put_aside(self, frames: _Frames, canonical: _CanonicalFrames, stopped: Int64Column) -> None:
        flags = canonical.flags[stopped]
        needs_more = (flags & self._stopping(frames) & (NEEDS_ALL_REGISTERS | CFA_BY_OTHER_REGISTER)) != 0
        if needs_more.any():
            self._set_aside.append(frames.sample[stopped[needs_more]])

    def _fall_back(
        self, frames: _Frames, without: Int64Column, place: _Place, callers: _Callers, levels: StackLevels
    ) -> BoolColumn:
        """Follow the frame pointers of the frames without rules; where that led to a caller."""
        unruled = Unruled(
            address_space=frames.address_space[without],
            dso=place.dso[without],
            lookup_offset=place.lookup_offset[without],
            stack_pointer=frames.sp[without],
            frame_pointer=frames.bp[without],
            dump=frames.dump.select(without),
        )
        chain = follow_frame_pointer(unruled, self._map, self._code)
        callers.return_address[without] = chain.return_address
        callers.stack_pointer[without] = chain.stack_pointer
        callers.frame_pointer[without] = chain.frame_pointer
        levels.end(frames.sample[without], chain.reason)
        return chain.is_found


def _callers(frames: _Frames, canonical: _CanonicalFrames, rules: RuleColumns) -> _Callers:
    return_address, is_readable = frames.dump.read(canonical.cfa + rules.return_offset[canonical.row])
    return _Callers(return_address, is_readable, canonical.cfa, _callers_frame_pointer(frames, canonical, rules))


def _callers_frame_pointer(frames: _Frames, canonical: _CanonicalFrames, rules: RuleColumns) -> UInt64Column:
    """RBP of the callers; where its save slot lies outside the dump (LLVM describes it as still saved behind ``pop %rbp``) the
    register has kept its value."""
    present = int(np.bitwise_or.reduce(canonical.flags))
    if not present & _POINTER_IS_SAVED:
        return frames.bp.copy()
    place = canonical.cfa
    if present & POINTER_SAVED_AT_POINTER:
        place = np.where(canonical.flags & POINTER_SAVED_AT_POINTER, frames.bp, canonical.cfa)
    saved, is_readable = frames.dump.read(place + rules.pointer_offset[canonical.row])
    is_restored: BoolColumn = is_readable & ((canonical.flags & _POINTER_IS_SAVED) != 0)
    return np.where(is_restored, saved, frames.bp)


def _reasons(frames: _Frames, canonical: _CanonicalFrames, callers: _Callers, stopped: Int64Column) -> UInt8Column:
    """Why each of the ``stopped`` frames has no caller (of those without rules nothing is decided here)."""
    is_readable, return_address = callers.is_readable[stopped], callers.return_address[stopped]
    refusal = canonical.refusal[stopped]
    reason = np.full(len(stopped), EndReason.DUMP_LIMIT, np.uint8)
    reason[is_readable & (canonical.cfa[stopped] <= frames.sp[stopped])] = EndReason.LOOP
    is_end = (is_readable & (return_address == 0)) | ((canonical.flags[stopped] & ENDS_THREAD) != 0)
    reason[is_end] = EndReason.THREAD_ENTRY
    return np.where(refusal != _NOT_REFUSED, refusal, reason)


def _step(frames: _Frames, callers: _Callers, going_on: Int64Column) -> _Frames:
    """The callers of the frames ``going_on``."""
    return _Frames(
        depth=frames.depth + 1,
        sample=frames.sample[going_on],
        address_space=frames.address_space[going_on],
        pc=callers.return_address[going_on],
        sp=callers.stack_pointer[going_on],
        bp=callers.frame_pointer[going_on],
        dump=frames.dump.select(going_on),
    )
