"""Unwinding with RSP, RBP and RIP alone, which is all that nearly every frame needs: one numpy step per level of the stacks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiler.model.arrays import BoolColumn, Int8Column, Int32Column, Int64Column, UInt8Column, UInt64Column
from symbolize.unwind.code_rules import CodeRules
from symbolize.unwind.dump_reader import DumpReader
from symbolize.unwind.expression import FrameInputs, UnsupportedExpressionError, evaluate
from symbolize.unwind.fallback import Unruled, follow_frame_pointer
from symbolize.unwind.levels import Level, StackLevels
from symbolize.unwind.registers import RBP, RIP, RSP
from symbolize.unwind.rule_rows import NO_RULES, CfaBase, FramePointerRule, RuleColumns
from symbolize.unwind.stacks import AddressMap, EndReason, StackDumps

_GOING_ON = 255


@dataclass(frozen=True, slots=True)
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


@dataclass(slots=True)
class _Step:
    """What the rules say of the callers; ``status``: an ``EndReason`` or ``_GOING_ON``."""

    row: Int32Column
    status: UInt8Column
    cfa: UInt64Column
    return_address: UInt64Column
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
        sp = dumps.registers[samples, RSP]
        return _Frames(
            depth=0,
            sample=samples,
            address_space=dumps.address_space[samples],
            pc=dumps.registers[samples, RIP],
            sp=sp,
            bp=dumps.registers[samples, RBP],
            dump=DumpReader(dumps.words, dumps.dump_start[samples], dumps.dump_bytes[samples], sp),
        )

    def _level(self, frames: _Frames, levels: StackLevels) -> _Frames:
        """Record one level and step to the callers."""
        back = np.uint64(1 if frames.depth else 0)
        dso, lookup = self._map.resolve(frames.address_space, frames.pc - back)
        offset = np.where(dso >= 0, lookup + back, frames.pc)
        is_return_address = np.full(len(dso), frames.depth > 0)
        levels.add(Level(frames.depth, frames.sample, dso, offset, is_return_address))
        rows = self._code.rows if frames.depth else self._code.rows_at_exact_address
        step = self._apply_rules(frames, rows(dso, lookup))
        without = np.flatnonzero(step.row == NO_RULES)
        if len(without):
            self._fall_back(frames, step, dso, lookup, without)
        return self._callers(frames, step, levels)

    def _apply_rules(self, frames: _Frames, row: Int32Column) -> _Step:
        rules = self._code.columns()
        base = rules.cfa_base[row]
        cfa = np.where(base == CfaBase.FRAME_POINTER, frames.bp, frames.sp)
        cfa += rules.cfa_offset[row]
        status = np.full(len(row), _GOING_ON, np.uint8)
        if base.max() >= CfaBase.EXPRESSION:
            self._unusual_cfa(frames, row, base, cfa, status)
        return_address, is_readable = frames.dump.read(cfa + rules.return_offset[row])
        is_usable = status == _GOING_ON
        status[is_usable & ~is_readable] = EndReason.DUMP_LIMIT
        status[is_usable & is_readable & (cfa <= frames.sp)] = EndReason.LOOP
        status[is_usable & (rules.ends_thread[row] | (is_readable & (return_address == 0)))] = EndReason.THREAD_ENTRY
        return _Step(row, status, cfa, return_address, _callers_frame_pointer(frames, rules, row, cfa))

    def _unusual_cfa(self, frames: _Frames, row: Int32Column, base: Int8Column, cfa: UInt64Column, status: UInt8Column) -> None:
        """CFAs by expression, and by another register in the innermost frame, where all are known."""
        rules = self._code.columns()
        if frames.depth == 0:
            other = np.flatnonzero(base == CfaBase.OTHER_REGISTER)
            register = rules.cfa_register[row[other]]
            cfa[other] = self._dumps.registers[frames.sample[other], register] + rules.cfa_offset[row[other]]
            status[other[~self._dumps.has_register[register]]] = EndReason.NO_CFI
        for number in np.unique(row[(base == CfaBase.EXPRESSION) & ~rules.needs_all_registers[row]]).tolist():
            self._expression_cfa(frames, number, np.flatnonzero(row == number), cfa, status)

    def _expression_cfa(
        self, frames: _Frames, number: int, selected: Int64Column, cfa: UInt64Column, status: UInt8Column
    ) -> None:
        known = {RSP: frames.sp[selected], RBP: frames.bp[selected], RIP: frames.pc[selected]}
        inputs = FrameInputs(len(selected), known.get, frames.dump.select(selected).read)
        rule = self._code.row(number).cfa
        try:
            cfa[selected], is_readable = evaluate(bytes(rule[1]) if rule else b"", inputs)
            status[selected[~is_readable]] = EndReason.DUMP_LIMIT
        except UnsupportedExpressionError:
            status[selected] = EndReason.NO_CFI

    def _fall_back(self, frames: _Frames, step: _Step, dso: Int32Column, lookup: UInt64Column, without: Int64Column) -> None:
        unruled = Unruled(
            address_space=frames.address_space[without],
            dso=dso[without],
            lookup_offset=lookup[without],
            stack_pointer=frames.sp[without],
            frame_pointer=frames.bp[without],
            dump=frames.dump.select(without),
        )
        chain = follow_frame_pointer(unruled, self._map, self._code)
        step.status[without] = np.where(chain.is_found, _GOING_ON, chain.reason)
        step.cfa[without] = chain.stack_pointer
        step.return_address[without] = chain.return_address
        step.frame_pointer[without] = chain.frame_pointer

    def _callers(self, frames: _Frames, step: _Step, levels: StackLevels) -> _Frames:
        rules = self._code.columns()
        needs_more = rules.needs_all_registers[step.row]
        if frames.depth:
            needs_more = needs_more | (rules.cfa_base[step.row] == CfaBase.OTHER_REGISTER)
        going_on = (step.status == _GOING_ON) & ~needs_more
        if needs_more.any():
            self._set_aside.append(frames.sample[needs_more])
        ended = ~going_on
        if ended.any():
            levels.end(frames.sample[ended], step.status[ended])
        return _Frames(
            depth=frames.depth + 1,
            sample=frames.sample[going_on],
            address_space=frames.address_space[going_on],
            pc=step.return_address[going_on],
            sp=step.cfa[going_on],
            bp=step.frame_pointer[going_on],
            dump=frames.dump.select(going_on),
        )


def _callers_frame_pointer(frames: _Frames, rules: RuleColumns, row: Int32Column, cfa: UInt64Column) -> UInt64Column:
    """RBP of the callers; where its save slot lies outside the dump (LLVM describes it as still saved behind ``pop %rbp``) the
    register has kept its value."""
    rule = rules.frame_pointer_rule[row]
    if rule.max() == FramePointerRule.AT_FRAME_POINTER:
        place = np.where(rule == FramePointerRule.AT_FRAME_POINTER, frames.bp, cfa)
    else:
        place = cfa
    saved, is_readable = frames.dump.read(place + rules.frame_pointer_offset[row])
    is_saved: BoolColumn = is_readable & (rule != FramePointerRule.SAME)
    return np.where(is_saved, saved, frames.bp)
