"""Unwinding with all registers, for the few stacks that need them: behind signal frames, and where CFAs lie in others."""

from __future__ import annotations

import numpy as np

from profiler.model.arrays import BoolColumn, Int32Column, Int64Column, UInt8Column, UInt64Column, distinct
from profiler.model.quick_dataclass import dataclass
from symbolize.elf.call_frame_program import RegisterRule, RuleKind
from symbolize.unwind.code_rules import CodeRules
from symbolize.unwind.code_sites import CodeSites
from symbolize.unwind.dump_reader import DumpReader, open_dumps
from symbolize.unwind.expression import FrameInputs, UnsupportedExpressionError, evaluate
from symbolize.unwind.fallback import Unruled, follow_frame_pointer
from symbolize.unwind.levels import Level, StackLevels
from symbolize.unwind.registers import CALLEE_SAVED, RBP, REGISTER_COUNT, RIP, RSP
from symbolize.unwind.rule_rows import NO_RULES, RuleRow
from symbolize.unwind.stacks import EndReason, StackDumps

_GOING_ON = 255


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Frames:
    """The current frame of every sample still being unwound.  ``registers``, ``known``: [k, 17].  ``is_caller``: RIP is a
    return address."""

    sample: Int64Column
    address_space: Int64Column
    registers: UInt64Column
    known: BoolColumn
    is_caller: BoolColumn
    dump: DumpReader

    def select(self, rows: Int64Column) -> _Frames:
        return _Frames(
            self.sample[rows],
            self.address_space[rows],
            self.registers[rows],
            self.known[rows],
            self.is_caller[rows],
            self.dump.select(rows),
        )


class FullWalk:
    """Walks one batch of dumps; the frames of one rule row are handled together."""

    def __init__(self, dumps: StackDumps, space_keys: UInt64Column, sites: CodeSites, code: CodeRules) -> None:
        """``space_keys``: of ``sites``, one per dump."""
        self._dumps = dumps
        self._space_keys = space_keys
        self._sites = sites
        self._code = code

    def run(self, samples: Int64Column, levels: StackLevels, max_depth: int) -> None:
        """Unwind ``samples`` into ``levels``."""
        dumps = self._dumps
        frames = _Frames(
            sample=samples,
            address_space=dumps.address_space[samples],
            registers=dumps.registers[samples],
            known=np.tile(dumps.has_register, (len(samples), 1)),
            is_caller=np.zeros(len(samples), np.bool_),
            dump=open_dumps(dumps, samples),
        )
        for depth in range(max_depth):
            if not len(frames.sample):
                break
            frames = self._level(depth, frames, levels)
        levels.end(frames.sample, EndReason.DEPTH_LIMIT)

    def _level(self, depth: int, frames: _Frames, levels: StackLevels) -> _Frames:
        sites = self._sites
        back = frames.is_caller.astype(np.uint64)
        site = sites.sites(self._space_keys[frames.sample], frames.registers[:, RIP], back)
        row, dso, lookup = sites.row[site], sites.dso[site], sites.offset[site] - back
        # The kernel pushes the address of the signal trampoline's first instruction, which no call precedes.
        is_return_address = frames.is_caller & ~self._code.columns().is_signal_frame[row]
        levels.add(Level(depth, frames.sample, 2 * site + is_return_address))
        callers = frames.select(np.arange(len(row)))
        status = np.full(len(row), _GOING_ON, np.uint8)
        # Frames that know all registers apart from those that do not: a rule may name one that only the former know.
        group = 2 * row.astype(np.int64) + frames.known.all(axis=1)
        for key in distinct(group).tolist():
            selected, number = np.flatnonzero(group == key), key // 2
            if number == NO_RULES:
                status[selected] = self._fall_back(frames, selected, dso[selected], lookup[selected], callers)
            else:
                status[selected] = _apply(self._code.row(number), frames.select(selected), selected, callers)
        going_on = status == _GOING_ON
        levels.end(frames.sample[~going_on], status[~going_on])
        return callers.select(np.flatnonzero(going_on))

    def _fall_back(
        self, frames: _Frames, selected: Int64Column, dso: Int32Column, lookup: UInt64Column, callers: _Frames
    ) -> UInt8Column:
        unruled = Unruled(
            address_space=frames.address_space[selected],
            dso=dso,
            lookup_offset=lookup,
            stack_pointer=frames.registers[selected, RSP],
            frame_pointer=frames.registers[selected, RBP],
            dump=frames.dump.select(selected),
        )
        chain = follow_frame_pointer(unruled, self._sites.address_map, self._code)
        callers.registers[selected, RIP] = chain.return_address
        callers.registers[selected, RSP] = chain.stack_pointer
        callers.registers[selected, RBP] = chain.frame_pointer
        callers.is_caller[selected] = True
        return np.where(chain.is_found, _GOING_ON, chain.reason).astype(np.uint8)


def _apply(row: RuleRow, frames: _Frames, selected: Int64Column, callers: _Frames) -> UInt8Column:
    """Write the registers of the callers of ``frames`` (rows ``selected`` of ``callers``); the status of each."""
    count = len(selected)
    inputs = FrameInputs(count, lambda number: _register(frames, number), frames.dump.read)
    try:
        cfa, cfa_is_readable = _canonical_frame_address(row, frames, inputs)
    except UnsupportedExpressionError:
        return np.full(count, EndReason.NO_CFI, np.uint8)
    caller = _Caller(frames, inputs, cfa, frames.registers.copy(), frames.known.copy())
    caller.apply(row)
    return_address, is_known = caller.registers[:, RIP], caller.known[:, RIP]
    is_undefined = dict(row.rules).get(row.return_register, (RuleKind.UNDEFINED, 0))[0] == RuleKind.UNDEFINED
    status = np.full(count, _GOING_ON, np.uint8)
    status[~is_known | ~cfa_is_readable] = EndReason.DUMP_LIMIT
    status[cfa_is_readable & is_known & _leads_back(row, frames, caller)] = EndReason.LOOP
    status[(is_known & (return_address == 0)) | is_undefined] = EndReason.THREAD_ENTRY
    callers.registers[selected] = caller.registers
    callers.known[selected] = caller.known
    callers.is_caller[selected] = not row.is_signal_frame
    return status


def _leads_back(row: RuleRow, frames: _Frames, caller: _Caller) -> BoolColumn:
    """Callers further down the stack than their callees, or equal to them; a signal may have been handled on another stack."""
    before, after = frames.registers[:, RSP], caller.registers[:, RSP]
    is_same: BoolColumn = (after == before) & (caller.registers[:, RIP] == frames.registers[:, RIP])
    return is_same if row.is_signal_frame else is_same | (after < before)


def _register(frames: _Frames, number: int) -> UInt64Column | None:
    if number >= REGISTER_COUNT or not frames.known[:, number].all():
        return None
    values: UInt64Column = frames.registers[:, number]
    return values


def _canonical_frame_address(row: RuleRow, frames: _Frames, inputs: FrameInputs) -> tuple[UInt64Column, BoolColumn]:
    """(CFA, could its memory be read)."""
    if row.cfa is None:
        raise UnsupportedExpressionError("no CFA")
    register, value = row.cfa
    if isinstance(value, bytes):
        return evaluate(value, inputs)
    base = _register(frames, register)
    if base is None:
        raise UnsupportedExpressionError(f"register {register} is not known")
    return base + np.uint64(value % 2**64), np.ones(inputs.count, np.bool_)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Caller:
    """Registers of the callers of ``frames`` while rules are applied; ``registers`` and ``known`` begin as copies."""

    frames: _Frames
    inputs: FrameInputs
    cfa: UInt64Column
    registers: UInt64Column
    known: BoolColumn

    def apply(self, row: RuleRow) -> None:
        if not row.is_signal_frame:
            lost = [number for number in range(REGISTER_COUNT) if number not in CALLEE_SAVED]
            self.known[:, lost] = False
        self.registers[:, RSP] = self.cfa
        self.known[:, RSP] = True
        self.known[:, RIP] = False
        for number, rule in row.rules:
            target = RIP if number == row.return_register else number
            if target < REGISTER_COUNT:
                self._restore(target, rule)

    def _restore(self, target: int, rule: RegisterRule) -> None:
        """Set one register; one that cannot be read keeps its value if calls keep it."""
        try:
            restored, is_readable = self._restored(target, rule)
        except UnsupportedExpressionError:
            restored, is_readable = self.cfa, np.zeros(self.inputs.count, np.bool_)
        self.registers[:, target] = np.where(is_readable, restored, self.registers[:, target])
        is_kept = target in CALLEE_SAVED and rule[0] != RuleKind.UNDEFINED
        self.known[:, target] = is_readable | (self.known[:, target] & is_kept)

    def _restored(self, target: int, rule: RegisterRule) -> tuple[UInt64Column, BoolColumn]:
        kind, value = rule
        everywhere = np.ones(self.inputs.count, np.bool_)
        if isinstance(value, bytes):
            result, is_readable = evaluate(value, self.inputs, self.cfa)
            if kind == RuleKind.VALUE_EXPRESSION:
                return result, is_readable
            in_memory, in_dump = self.inputs.memory(result)
            return in_memory, is_readable & in_dump
        if kind == RuleKind.OFFSET:
            return self.inputs.memory(self.cfa + np.uint64(value % 2**64))
        if kind == RuleKind.VALUE_OFFSET:
            return self.cfa + np.uint64(value % 2**64), everywhere
        source = {RuleKind.SAME_VALUE: target, RuleKind.REGISTER: value}.get(kind, REGISTER_COUNT)
        if source >= REGISTER_COUNT:
            return self.cfa, ~everywhere
        return self.frames.registers[:, source], self.frames.known[:, source]
