"""Watching in turns that is cut short anywhere and taken up again: every window once, and no window of a wrong build."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from collectors.processes.process_times import CpuUsage
from collectors.prometheus import parse_page
from collectors.targets.watched_process import ProcessMoment
from profiler.experiment.plan.experiment_plan import ExperimentPlan, PlanTarget
from profiler.experiment.plan.plan_file import parse_plan
from profiler.experiment.run.runner import SessionSetup
from profiler.experiment.targets import target_session
from profiler.experiment.targets.target_session import watch_targets
from profiler.experiment.targets.target_window import TargetMoment, WindowRule
from profiler.store.records import SessionState
from profiler.store.store import Store, open_store

NODES, WINDOWS = 3, 2
# What the page of each build's processes counts in one observation.
SECONDS = {"old": 0.020, "new": 0.010}


class Cut(Exception):
    """Stands for whatever ends a session."""


class Devnet:
    """Nodes that run what they were last swapped to, and a session that ends at the ``cut``-th thing it tells."""

    def __init__(self, cut: int = -1) -> None:
        self.builds: dict[str, str] = {}
        self.swaps: list[tuple[str, str]] = []
        self.seconds = 0.0
        self.count = 0
        self.told = 0
        self.cut = cut

    def note(self, line: str) -> None:
        self.told += 1
        if self.told == self.cut:
            raise Cut(line)

    def swap(self, target: PlanTarget) -> str:
        self.note(f"{target.node}: becomes {target.variant}")
        self.builds[target.node] = target.variant
        self.swaps.append((target.node, target.variant))
        return ""

    def look(self, targets: Sequence[PlanTarget], rule: WindowRule) -> list[TargetMoment]:
        """Of every process: the counters of a build whose observations take so long."""
        self.seconds += rule.window_s
        self.count += 10
        found = []
        for target in targets:
            total = self.count * SECONDS[self.builds.get(target.node, target.variant)]
            page = parse_page(f"slot_seconds_sum {total}\nslot_seconds_count {self.count}\n", rule.pages)
            process = ProcessMoment(((7, 100),), CpuUsage(self.count, 0, 0))
            found.append(TargetMoment(round(self.seconds * 1e9), process, page))
        return found


def crossover() -> ExperimentPlan:
    text = f'[experiment]\nname = "x"\ndesign = "crossover"\nprofile = "none"\nruns = {WINDOWS}\nwindow = 10\n'
    text += 'swap = ["deploy", "{node}", "{variant}"]\n[[metric]]\nname = "slot"\nprometheus = "slot_seconds"\n'
    text += '[[variant]]\nname = "old"\n[[variant]]\nname = "new"\n'
    for node in range(NODES):
        for variant in ("old", "new"):
            text += f'[[target]]\nvariant = "{variant}"\nnode = "n{node}"\npid = {node + 1}\nmetrics = "http://x/m"\n'
    return parse_plan(text, Path("/p.toml"))


def watch(devnet: Devnet, store: Store, monkeypatch: pytest.MonkeyPatch, resumed: str = "") -> None:
    monkeypatch.setattr(target_session, "_look_at_all", devnet.look)
    monkeypatch.setattr(target_session._Watch, "_swap", lambda _, target: devnet.swap(target))
    monkeypatch.setattr(target_session.time, "sleep", lambda seconds: None)
    watch_targets(crossover(), store, devnet.note, SessionSetup(resumed))


def windows(store: Store) -> list[tuple[str, str, int]]:
    """(node, variant, window), checked to be of the build that they say."""
    found = []
    for run in store.runs():
        info = store.load(run).info
        identity = info.identity
        (slot,) = [metric.value for metric in info.outcome.metrics if metric.name == "slot"]
        assert slot == pytest.approx(SECONDS[identity.variant] * 1e9)
        found.append((identity.instance, identity.variant, identity.round))
    return found


EXPECTED = sorted(
    (f"n{node}", ("old", "new")[(node + period) % 2], period * WINDOWS + number)
    for node in range(NODES)
    for period in (0, 1)
    for number in range(WINDOWS)
)


def test_a_whole_crossover(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(tmp_path / "store", create=True)
    devnet = Devnet()
    watch(devnet, store, monkeypatch)
    assert sorted(windows(store)) == EXPECTED
    assert devnet.swaps == [(f"n{n}", ("old", "new")[(n + period) % 2]) for period in (0, 1) for n in range(NODES)]


@pytest.mark.parametrize("cut", range(1, 20))
def test_a_crossover_that_was_cut_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: int) -> None:
    """19 things are told: the session, two times three swaps, and twelve windows."""
    store = open_store(tmp_path / "store", create=True)
    with pytest.raises(Cut):
        watch(Devnet(cut), store, monkeypatch)
    before = Counter(windows(store))
    session = store.sessions()[0]
    assert session.state is SessionState.INTERRUPTED
    # The nodes have forgotten everything: a host that was started again.
    watch(Devnet(), store, monkeypatch, session.name)
    assert sorted(windows(store)) == EXPECTED
    assert not before - Counter(windows(store))
    assert sorted(run.summary.position for run in store.runs()) == list(range(len(EXPECTED)))
    assert store.sessions()[0].state is SessionState.FINISHED
