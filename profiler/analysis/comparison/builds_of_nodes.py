"""Whether nodes ran the builds that their experiment calls them: a swap or a deployment that did nothing shows in build IDs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from profiler.model.costs import ArmCosts
from profiler.model.quality import ReportWarning

_SHOWN_ID = 12
_SHOWN_NODES = 5
_Builds = dict[str, list[str]]


def build_warnings(baseline: ArmCosts, candidates: Sequence[ArmCosts]) -> list[ReportWarning]:
    """One for each arm that is several builds, and for each candidate that has one with the baseline in common."""
    builds = {arm.name: _builds(arm) for arm in (baseline, *candidates)}
    found = [_mixed(name, of_arm) for name, of_arm in builds.items() if len(of_arm) > 1]
    for candidate in candidates:
        shared = [build for build in builds[candidate.name] if build in builds[baseline.name]]
        found += [_shared(baseline.name, candidate.name, build, builds) for build in shared]
    return found


def _builds(arm: ArmCosts) -> _Builds:
    """Nodes by build ID, of all windows and runs of which it is known."""
    found: _Builds = {}
    for info in (*arm.infos, *arm.plain):
        if info.program.build_id and info.identity.instance:
            nodes = found.setdefault(info.program.build_id, [])
            nodes += [] if info.identity.instance in nodes else [info.identity.instance]
    return found


def _mixed(name: str, builds: _Builds) -> ReportWarning:
    shown = "; ".join(f"{build[:_SHOWN_ID]} on {_nodes(nodes)}" for build, nodes in sorted(builds.items()))
    message = f"{name} is {len(builds)} builds: {shown}"
    return ReportWarning(
        "builds-mixed", message, "put one build on all of its nodes, and see whether their swap does what it is to"
    )


def _shared(baseline: str, candidate: str, build: str, builds: Mapping[str, _Builds]) -> ReportWarning:
    places = " and ".join(f"as {name} on {_nodes(builds[name][build])}" for name in (baseline, candidate))
    message = f"{baseline} and {candidate} are one build, {build[:_SHOWN_ID]}: {places}"
    advice = "unless they differ in their settings only, a swap or a deployment did nothing: look at the hosts"
    return ReportWarning("build-shared", message, advice)


def _nodes(nodes: Iterable[str]) -> str:
    names = sorted(nodes)
    more = [f"{len(names) - _SHOWN_NODES} more"] if len(names) > _SHOWN_NODES else []
    return ", ".join([*names[:_SHOWN_NODES], *more])
