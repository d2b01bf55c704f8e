"""Batch unwinder: call stacks from user registers and stack dumps, by DWARF call frame information.

All samples of a batch are stepped together, one level of the stacks per numpy step (``QuickWalk``); stacks that pass through a
signal frame or through a function whose frame address lies in a register other than RSP and RBP are unwound once more with all
registers (``FullWalk``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from profiler.model.arrays import BoolColumn, Int32Column, Int64Column, UInt64Column
from symbolize.elf.image import ElfImage
from symbolize.unwind.code_rules import CodeRules
from symbolize.unwind.registers import RIP, RSP
from symbolize.unwind.stacks import AddressMap as AddressMap
from symbolize.unwind.stacks import EndReason as EndReason
from symbolize.unwind.stacks import StackDumps as StackDumps
from symbolize.unwind.stored_rules import RuleStore as RuleStore
from symbolize.unwind.stored_rules import StoredRules
from symbolize.unwind.unwound_stacks import UnwoundStacks as UnwoundStacks

if TYPE_CHECKING:
    from symbolize.unwind.code_sites import CodeSites

MAX_DEPTH = 4096  # the biggest dump holds no more frames that are aligned as the ABI wants them


class Unwinder:
    """``images``: the ELF image of a DSO row, ``None`` when there is none; called lazily, once per row.  What was compiled
    for one batch is kept for the next, and with ``keep_rules`` in ``store`` for other unwinders."""

    def __init__(self, images: Callable[[int], ElfImage | None], store: RuleStore | None = None) -> None:
        self._code = CodeRules(images, store)
        self._sites: CodeSites | None = None

    def unwind(self, dumps: StackDumps, address_map: AddressMap, max_depth: int = MAX_DEPTH) -> UnwoundStacks:
        """The stacks of all samples of ``dumps``.  Damaged or missing call frame information ends a stack, it never raises."""
        # Recordings without stack dumps come only for the rules.
        from symbolize.unwind.full_walk import FullWalk
        from symbolize.unwind.levels import StackLevels
        from symbolize.unwind.quick_walk import QuickWalk

        levels = StackLevels(len(dumps))
        sites, space_keys = self._sites_for(address_map, dumps.address_space)
        if len(dumps) and dumps.has_register[RIP] and dumps.has_register[RSP]:
            samples = np.arange(len(dumps), dtype=np.int64)
            remaining = QuickWalk(dumps, space_keys, sites, self._code).run(samples, levels, max_depth)
            if len(remaining):
                levels.void(remaining)
                FullWalk(dumps, space_keys, sites, self._code).run(remaining, levels, max_depth)
        return levels.stacks(sites)

    def _sites_for(self, address_map: AddressMap, spaces: Int64Column) -> tuple[CodeSites, UInt64Column]:
        """(the sites met in this map so far, the part of their keys for each of ``spaces``)."""
        from symbolize.unwind.code_sites import CodeSites

        if self._sites is not None and self._sites.address_map is address_map:
            keys = self._sites.space_keys(spaces)
            if keys is not None:
                return self._sites, keys
        self._sites = CodeSites(address_map, self._code)
        keys = self._sites.space_keys(spaces)
        if keys is None:
            raise ValueError("more address spaces in one batch than sites can be numbered in")
        return self._sites, keys

    def cfa_from_frame_pointer(self, dso: Int32Column, file_offset: UInt64Column) -> BoolColumn:
        """Is the CFA computed from RBP there: in a frame-pointer stack only such an innermost frame is sure to be followed by
        its direct caller.  ``file_offset``: the exact offset of innermost frames; False where no rule is known."""
        return self._code.uses_frame_pointer(dso, file_offset)

    def is_thread_entry(self, dso: Int32Column, file_offset: UInt64Column) -> BoolColumn:
        """Can a stack end there: the return address is undefined by CFI, or the function is known as an entry of threads.
        ``file_offset``: look-up offsets, for callers one less than the return address."""
        return self._code.is_thread_entry(dso, file_offset)

    def new_rules(self) -> dict[int, StoredRules]:
        """By DSO row, the rules of those of which some were compiled since the last time they were stored."""
        return self._code.new_rules()

    def add_rules(self, rules: Mapping[int, StoredRules]) -> None:
        """Takes over ``new_rules`` of another unwinder with the same images."""
        self._code.add_rules(rules)

    def keep_rules(self) -> None:
        """Stores what was compiled since the last time."""
        self._code.keep()
