"""Call stacks from a processor's branch records (LBR in call-stack mode): the calls that were not returned from.

Source: ``PERF_SAMPLE_BRANCH_CALL_STACK`` and ``struct perf_branch_entry`` in ``include/uapi/linux/perf_event.h``.
"""

from __future__ import annotations

import numpy as np

from collectors.ingest.callchains import AddressLists
from collectors.ingest.ragged import reversed_positions, row_starts
from collectors.perf_data import spec
from collectors.perf_data.sample_fields import BRANCH_ENTRY_WORDS, SampleFields
from collectors.perf_data.sample_layout import SampleLayout
from profiler.model.arrays import BoolColumn
from profiler.model.frame_table import CpuMode

_KERNEL_HALF = np.uint64(1 << 63)


def has_branch_call_stacks(layout: SampleLayout) -> bool:
    """Whether the branch entries are calls; entries of any other kind (taken branches) are no stack."""
    return layout.has(spec.PERF_SAMPLE_BRANCH_STACK) and bool(layout.branch_sample_type & spec.PERF_SAMPLE_BRANCH_CALL_STACK)


def has_user_callers(fields: SampleFields, chains: AddressLists) -> BoolColumn:
    """The samples whose user part the branch entries replace: they interrupted user code somewhere, and there are entries."""
    is_user = chains.addresses < _KERNEL_HALF if chains.mode is None else chains.mode == CpuMode.USER
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(is_user)])
    users: BoolColumn = np.diff(before[chains.start]) > 0
    return users & (fields.branch_count > 0)


def branch_callers(fields: SampleFields, chosen: BoolColumn) -> AddressLists:
    """The user stacks of the chosen samples, outermost first; empty lists for the others.

    An entry leads from a call instruction to the function that was called.  The innermost place is where the latest call
    went, the others are call instructions themselves: none of these addresses is a return address.
    """
    count = np.where(chosen, fields.branch_count, 0)
    entries, _ = reversed_positions(np.zeros(len(count), np.int64), count)
    calls = np.repeat(fields.branch_start, count) + BRANCH_ENTRY_WORDS * entries
    lengths = count + (count > 0)
    starts = row_starts(lengths)
    addresses = np.zeros(int(starts[-1]), np.uint64)
    is_called = np.zeros(len(addresses), np.bool_)
    innermost = starts[1:][count > 0] - 1
    is_called[innermost] = True
    addresses[~is_called] = fields.words[calls]
    addresses[innermost] = fields.words[fields.branch_start[count > 0] + 1]
    nothing = np.zeros(len(addresses), np.bool_)
    mode = np.full(len(addresses), CpuMode.USER, np.uint8)
    return AddressLists(addresses, starts, nothing, mode)
