"""Which runs of two arms are compared, and how: paired over common blocks, or as independent replicates.

A replicate is a run, never a time window inside one: windows of one process share its luck, so counting them as replicates
would make differences between two lucks look certain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from profiler.model.arrays import FloatColumn, Int64Column
from profiler.model.run import CaptureInfo, RunMode

Block = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class Matching:
    """``baseline`` and ``candidate``: for each replicate the runs (columns of the arm's tables) that make it up, one run as a
    rule.  Paired arms have equally many replicates, those of one block at one position.  ``left_out``: runs without a partner,
    (baseline, candidate)."""

    is_paired: bool
    baseline: tuple[tuple[int, ...], ...]
    candidate: tuple[tuple[int, ...], ...]
    left_out: tuple[int, int] = (0, 0)

    @property
    def fewest(self) -> int:
        return min(len(self.baseline), len(self.candidate))

    @property
    def is_averaged(self) -> bool:
        return any(len(runs) > 1 for runs in (*self.baseline, *self.candidate))


def match_runs(baseline: Sequence[CaptureInfo], candidate: Sequence[CaptureInfo]) -> Matching:
    """Pairs the (session, host, round) blocks that both arms have, in the order of their keys; without any, all runs are
    independent replicates.  Several runs of one arm in one block are averaged: the block is what they share.  The same files
    in both arms pair with themselves."""
    if tuple(baseline) == tuple(candidate) and all(info.source for info in baseline):
        each = tuple((run,) for run in range(len(baseline)))
        return Matching(True, each, each)
    blocks = _runs_by_block(baseline), _runs_by_block(candidate)
    common = sorted(blocks[0].keys() & blocks[1].keys())
    if not common:
        return Matching(False, tuple((run,) for run in range(len(baseline))), tuple((run,) for run in range(len(candidate))))
    first, second = (tuple(tuple(runs[block]) for block in common) for runs in blocks)
    left_out = len(baseline) - sum(map(len, first)), len(candidate) - sum(map(len, second))
    return Matching(True, first, second, left_out)


def replicate_means(values: Int64Column | FloatColumn, replicates: Sequence[Sequence[int]]) -> FloatColumn:
    """[..., runs] to [..., replicates], in float64: exact for integers below 2^53 when every replicate is one run."""
    if all(len(runs) == 1 for runs in replicates):
        picked: FloatColumn = values[..., [runs[0] for runs in replicates]].astype(np.float64)
        return picked
    means = [values[..., list(runs)].mean(axis=-1, dtype=np.float64) for runs in replicates]
    return np.stack(means, axis=-1)


def _runs_by_block(infos: Sequence[CaptureInfo]) -> dict[Block, list[int]]:
    blocks: dict[Block, list[int]] = {}
    for run, info in enumerate(infos):
        if info.identity.mode is not RunMode.IMPORTED and info.identity.session:
            block = (info.identity.session, info.host.hostname, info.identity.round)
            blocks.setdefault(block, []).append(run)
    return blocks
