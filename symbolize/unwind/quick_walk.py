"""Unwinding with RSP, RBP and RIP alone, which is all that nearly every frame needs: one numpy step per level of the stacks."""

from __future__ import annotations

import numpy as np

from profiler.model.arrays import BoolColumn, Int32Column, Int64Column, UInt8Column, UInt64Column, distinct
from profiler.model.quick_dataclass import dataclass
from symbolize.unwind.code_rules import CodeRules
from symbolize.unwind.code_sites import CodeSites
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
)
from symbolize.unwind.stacks import EndReason, StackDumps

_NOT_REFUSED = 255
# (CFA, refusal) of all frames of a level
_CfaOrRefusal = tuple[UInt64Column, UInt8Column]
_POINTER_IS_SAVED = POINTER_SAVED_AT_CFA | POINTER_SAVED_AT_POINTER


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Frames:
    """The current frame of every sample still being unwound; columns of equal length.

    ``sample``: row of the dumps.  ``space_key``: of ``CodeSites``.  ``pc``: the exact address; the frames of one level are all
    innermost ones or all callers.
    """

    depth: int
    sample: Int64Column
    space_key: UInt64Column
    pc: UInt64Column
    sp: UInt64Column
    bp: UInt64Column
    dump: DumpReader


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _CanonicalFrames:
    """CFA of every frame.  ``flags``: of the rules at its site; ``present``: all of them together.

    ``refusal``: why the CFA could not be computed (``EndReason``), or ``_NOT_REFUSED``; ``None`` where none was refused.
    """

    site: Int32Column
    flags: UInt8Column
    present: int
    cfa: UInt64Column
    refusal: UInt8Column | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Callers:
    """The registers of the callers; ``is_readable``: the return address was in the dump."""

    return_address: UInt64Column
    is_readable: BoolColumn
    stack_pointer: UInt64Column
    frame_pointer: UInt64Column

    def registers(self) -> tuple[UInt64Column, UInt64Column, UInt64Column]:
        """RIP, RSP and RBP."""
        return self.return_address, self.stack_pointer, self.frame_pointer


class QuickWalk:
    """Walks one batch of dumps; what needs more registers is left to ``FullWalk``."""

    def __init__(self, dumps: StackDumps, space_keys: UInt64Column, sites: CodeSites, code: CodeRules) -> None:
        """``space_keys``: of ``sites``, one per dump."""
        self._dumps = dumps
        self._space_keys = space_keys
        self._sites = sites
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
            space_key=self._space_keys[samples],
            pc=dumps.registers[samples, RIP],
            sp=dumps.registers[samples, RSP],
            bp=dumps.registers[samples, RBP],
            dump=open_dumps(dumps, samples),
        )

    def _level(self, frames: _Frames, levels: StackLevels) -> _Frames:
        """Record one level and step to the callers."""
        site = self._sites.sites(frames.space_key, frames.pc, frames.depth > 0)
        levels.add(Level(frames.depth, frames.sample, 2 * site + (frames.depth > 0)))
        canonical = self._canonical_frames(frames, site)
        callers = self._callers(frames, canonical)
        is_stopped = (callers.return_address == 0) | (canonical.cfa <= frames.sp)
        if canonical.present & self._stopping(frames):
            is_stopped |= (canonical.flags & self._stopping(frames)) != 0
        if canonical.refusal is not None:
            is_stopped |= canonical.refusal != _NOT_REFUSED
        stopped = np.flatnonzero(is_stopped)
        if not len(stopped):
            return _Frames(frames.depth + 1, frames.sample, frames.space_key, *callers.registers(), frames.dump)
        levels.end(frames.sample[stopped], _reasons(frames, canonical, callers, stopped))
        self._put_aside(frames, canonical, stopped)
        without = stopped[(canonical.flags[stopped] & HAS_NO_RULES) != 0]
        if len(without):
            is_stopped[without] = ~self._fall_back(frames, site[without], without, callers, levels)
        return _step(frames, callers, np.flatnonzero(~is_stopped))

    def _stopping(self, frames: _Frames) -> int:
        """Flags of rows that this walk cannot follow; other registers are known in the innermost frame only."""
        return ENDS_THREAD | NEEDS_ALL_REGISTERS | HAS_NO_RULES | (CFA_BY_OTHER_REGISTER if frames.depth else 0)

    def _canonical_frames(self, frames: _Frames, site: Int32Column) -> _CanonicalFrames:
        sites = self._sites
        flags = sites.flags[site]
        present = int(np.bitwise_or.reduce(flags))
        cfa = np.where(flags & CFA_BY_FRAME_POINTER, frames.bp, frames.sp)
        cfa += sites.cfa_offset[site]
        by_other = present & CFA_BY_OTHER_REGISTER and not frames.depth
        if not (by_other or present & CFA_BY_EXPRESSION_BIT):
            return _CanonicalFrames(site, flags, present, cfa, None)
        refusal = np.full(len(site), _NOT_REFUSED, np.uint8)
        if by_other:
            self._cfa_by_other_register(frames, np.flatnonzero(flags & CFA_BY_OTHER_REGISTER), site, (cfa, refusal))
        if present & CFA_BY_EXPRESSION_BIT:
            row = sites.row[site]
            for number in distinct(row[(flags & CFA_BY_EXPRESSION_BIT) != 0]).tolist():
                self._cfa_by_expression(frames, number, np.flatnonzero(row == number), (cfa, refusal))
        return _CanonicalFrames(site, flags, present, cfa, refusal)

    def _cfa_by_other_register(self, frames: _Frames, at: Int64Column, site: Int32Column, found: _CfaOrRefusal) -> None:
        """Fills in what is ``found`` for the frames ``at``; so does ``_cfa_by_expression``."""
        cfa, refusal = found
        rules, row = self._code.columns(), self._sites.row[site[at]]
        register = rules.cfa_register[row]
        cfa[at] = self._dumps.registers[frames.sample[at], register] + rules.cfa_offset[row]
        refusal[at[~self._dumps.has_register[register]]] = EndReason.NO_CFI

    def _cfa_by_expression(self, frames: _Frames, number: int, at: Int64Column, found: _CfaOrRefusal) -> None:
        cfa, refusal = found
        known = {RSP: frames.sp[at], RBP: frames.bp[at], RIP: frames.pc[at]}
        inputs = FrameInputs(len(at), known.get, frames.dump.select(at).read)
        rule = self._code.row(number).cfa
        try:
            cfa[at], is_readable = evaluate(bytes(rule[1]) if rule else b"", inputs)
            refusal[at[~is_readable]] = EndReason.DUMP_LIMIT
        except UnsupportedExpressionError:
            refusal[at] = EndReason.NO_CFI

    def _put_aside(self, frames: _Frames, canonical: _CanonicalFrames, stopped: Int64Column) -> None:
        flags = canonical.flags[stopped]
        needs_more = (flags & self._stopping(frames) & (NEEDS_ALL_REGISTERS | CFA_BY_OTHER_REGISTER)) != 0
        if needs_more.any():
            self._set_aside.append(frames.sample[stopped[needs_more]])

    def _fall_back(
        self, frames: _Frames, site: Int32Column, without: Int64Column, callers: _Callers, levels: StackLevels
    ) -> BoolColumn:
        """Follow the frame pointers of the frames ``without`` rules, which are at ``site``; where that led to a caller."""
        unruled = Unruled(
            address_space=self._dumps.address_space[frames.sample[without]],
            dso=self._sites.dso[site],
            lookup_offset=self._sites.offset[site] - np.uint64(frames.depth > 0),
            stack_pointer=frames.sp[without],
            frame_pointer=frames.bp[without],
            dump=frames.dump.select(without),
        )
        chain = follow_frame_pointer(unruled, self._sites.address_map, self._code)
        callers.return_address[without] = chain.return_address
        callers.stack_pointer[without] = chain.stack_pointer
        callers.frame_pointer[without] = chain.frame_pointer
        levels.end(frames.sample[without], chain.reason)
        return chain.is_found

    def _callers(self, frames: _Frames, canonical: _CanonicalFrames) -> _Callers:
        return_address, is_readable = frames.dump.read(canonical.cfa + self._sites.return_offset[canonical.site])
        return _Callers(return_address, is_readable, canonical.cfa, self._callers_frame_pointer(frames, canonical))

    def _callers_frame_pointer(self, frames: _Frames, canonical: _CanonicalFrames) -> UInt64Column:
        """RBP of the callers; where its save slot lies outside the dump (LLVM describes it as still saved behind ``pop %rbp``)
        the register has kept its value."""
        if not canonical.present & _POINTER_IS_SAVED:
            return frames.bp.copy()
        place = canonical.cfa
        if canonical.present & POINTER_SAVED_AT_POINTER:
            place = np.where(canonical.flags & POINTER_SAVED_AT_POINTER, frames.bp, canonical.cfa)
        saved, is_readable = frames.dump.read(place + self._sites.pointer_offset[canonical.site])
        is_restored: BoolColumn = is_readable & ((canonical.flags & _POINTER_IS_SAVED) != 0)
        return np.where(is_restored, saved, frames.bp)


def _reasons(frames: _Frames, canonical: _CanonicalFrames, callers: _Callers, stopped: Int64Column) -> UInt8Column:
    """Why each of the ``stopped`` frames has no caller (of those without rules nothing is decided here)."""
    is_readable, return_address = callers.is_readable[stopped], callers.return_address[stopped]
    reason = np.full(len(stopped), EndReason.DUMP_LIMIT, np.uint8)
    reason[is_readable & (canonical.cfa[stopped] <= frames.sp[stopped])] = EndReason.LOOP
    is_end = (is_readable & (return_address == 0)) | ((canonical.flags[stopped] & ENDS_THREAD) != 0)
    reason[is_end] = EndReason.THREAD_ENTRY
    if canonical.refusal is None:
        return reason
    refusal = canonical.refusal[stopped]
    return np.where(refusal != _NOT_REFUSED, refusal, reason)


def _step(frames: _Frames, callers: _Callers, going_on: Int64Column) -> _Frames:
    """The callers of the frames ``going_on``."""
    return _Frames(
        depth=frames.depth + 1,
        sample=frames.sample[going_on],
        space_key=frames.space_key[going_on],
        pc=callers.return_address[going_on],
        sp=callers.stack_pointer[going_on],
        bp=callers.frame_pointer[going_on],
        dump=frames.dump.select(going_on),
    )
