"""Which runs of two arms are compared, and how: paired over common blocks, or as independent replicates.

A replicate is a run, never a time window inside one: windows of one process share its luck, so counting them as replicates
would make differences between two lucks look certain.  Where runs are windows of watched processes, the process is the
replicate and its windows are averaged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from profiler.model.arrays import FloatColumn, Int64Column
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import CaptureInfo, RunMode

if TYPE_CHECKING:
    # Reports use this module too, and have no comparison.
    from profiler.model.comparison import InstanceNames

Block = tuple[str | int, ...]
_Groups = dict[Block, list[int]]


@dataclass(frozen=True, slots=True)
class Matching:
    """``baseline`` and ``candidate``: for each replicate the runs (columns of the arm's tables) that make it up, one run as a
    rule.  Paired arms have equally many replicates, those of one block at one position.  ``left_out``: runs without a partner,
    (baseline, candidate).  ``by_instance``: replicates are processes, each with all its windows; ``instances``: their names."""

    is_paired: bool
    baseline: tuple[tuple[int, ...], ...]
    candidate: tuple[tuple[int, ...], ...]
    left_out: tuple[int, int] = (0, 0)
    by_instance: bool = False
    instances: InstanceNames = ((), ())

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
    if any(info.identity.instance for info in (*baseline, *candidate)):
        return _match_instances(baseline, candidate)
    blocks = runs_by_block(baseline), runs_by_block(candidate)
    common = sorted(blocks[0].keys() & blocks[1].keys())
    if not common:
        return Matching(False, tuple((run,) for run in range(len(baseline))), tuple((run,) for run in range(len(candidate))))
    return _paired(blocks, common, (len(baseline), len(candidate)))


def _match_instances(baseline: Sequence[CaptureInfo], candidate: Sequence[CaptureInfo]) -> Matching:
    """Processes that ran both arms are their own pairs (crossover); arms of different processes are independent."""
    groups = _runs_by_instance(baseline), _runs_by_instance(candidate)
    common = sorted(groups[0].keys() & groups[1].keys())
    if common:
        paired = _paired(groups, common, (len(baseline), len(candidate)))
        return replace(paired, by_instance=True, instances=_instance_names(common, common))
    keys = sorted(groups[0]), sorted(groups[1])
    first, second = (tuple(tuple(group[key]) for key in of_arm) for group, of_arm in zip(groups, keys, strict=True))
    return Matching(False, first, second, by_instance=True, instances=_instance_names(*keys))


def _instance_names(baseline: Sequence[Block], candidate: Sequence[Block]) -> InstanceNames:
    """Of (session, host, instance) keys; with the host where one name is used on several."""
    hosts: dict[Block, set[Block]] = {}
    for _, host, instance in (*baseline, *candidate):
        hosts.setdefault((instance,), set()).add((host,))

    def named(key: Block) -> str:
        _, host, instance = key
        return f"{instance} on {host}" if len(hosts[(instance,)]) > 1 else str(instance)

    return tuple(map(named, baseline)), tuple(map(named, candidate))


def _paired(groups: tuple[_Groups, _Groups], common: Sequence[Block], counts: tuple[int, int]) -> Matching:
    first, second = (tuple(tuple(group[key]) for key in common) for group in groups)
    return Matching(True, first, second, (counts[0] - sum(map(len, first)), counts[1] - sum(map(len, second))))


@dataclass(frozen=True, slots=True)
class CommonReplicates:
    """Of several arms: for each the replicates, as in ``Matching``; of paired ones the same blocks or processes in all."""

    is_paired: bool
    arms: tuple[tuple[tuple[int, ...], ...], ...]

    @property
    def fewest(self) -> int:
        return min(len(arm) for arm in self.arms)


def match_arms(arms: Sequence[Sequence[CaptureInfo]]) -> CommonReplicates:
    """As ``match_runs`` for more than two arms: paired where all of them share blocks."""
    by_instance = any(info.identity.instance for arm in arms for info in arm)
    groups = [_runs_by_instance(arm) if by_instance else runs_by_block(arm) for arm in arms]
    common = sorted(set.intersection(*(set(group) for group in groups)))
    if common:
        return CommonReplicates(True, tuple(tuple(tuple(group[key]) for key in common) for group in groups))
    if by_instance:
        return CommonReplicates(False, tuple(tuple(tuple(group[key]) for key in sorted(group)) for group in groups))
    return CommonReplicates(False, tuple(tuple((run,) for run in range(len(arm))) for arm in arms))


def replicate_means(values: Int64Column | FloatColumn, replicates: Sequence[Sequence[int]]) -> FloatColumn:
    """[..., runs] to [..., replicates], in float64: exact for integers below 2^53 when every replicate is one run."""
    if all(len(runs) == 1 for runs in replicates):
        picked: FloatColumn = values[..., [runs[0] for runs in replicates]].astype(np.float64)
        return picked
    means = [values[..., list(runs)].mean(axis=-1, dtype=np.float64) for runs in replicates]
    return np.stack(means, axis=-1)


def windows_by_process(infos: Sequence[CaptureInfo]) -> tuple[tuple[int, ...], ...]:
    """For runs that are windows of watched processes, those of each; () for runs that are processes of their own."""
    if not any(info.identity.instance for info in infos):
        return ()
    groups = _runs_by_instance(infos)
    return tuple(tuple(groups[key]) for key in sorted(groups))


def _runs_by_instance(infos: Sequence[CaptureInfo]) -> _Groups:
    groups: _Groups = {}
    for run, info in enumerate(infos):
        identity = info.identity
        groups.setdefault((identity.session, info.host.hostname, identity.instance), []).append(run)
    return groups


def runs_by_block(infos: Sequence[CaptureInfo]) -> dict[Block, list[int]]:
    """Positions of the runs of each (session, host, round); imported runs belong to none."""
    blocks: _Groups = {}
    for run, info in enumerate(infos):
        if info.identity.mode is not RunMode.IMPORTED and info.identity.session:
            block = (info.identity.session, info.host.hostname, info.identity.round)
            blocks.setdefault(block, []).append(run)
    return blocks
