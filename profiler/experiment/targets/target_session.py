"""A session that watches processes which run already: window after window, all of them at the same time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from collectors.host import host_facts
from collectors.processes.process_output import output_tail, with_last_line
from collectors.processes.process_tree import TreeCommand, run_tree
from collectors.prometheus import parse_series
from profiler.errors import CaptureError
from profiler.experiment.plan.experiment_plan import ExperimentPlan, PlanTarget
from profiler.experiment.plan.placeholders import replaced
from profiler.experiment.run.runner import SessionSetup
from profiler.experiment.targets.target_periods import Period, target_periods
from profiler.experiment.targets.target_window import TargetMoment, WindowRule, look_at_target, window_outcome
from profiler.model.capture import empty_capture
from profiler.model.experiment import Design
from profiler.model.run import CaptureInfo, HostFacts, RunIdentity, RunMode, RunOutcome
from profiler.store.records import SessionStart, SessionState
from profiler.store.store import Store

SWAP_TIMEOUT_S = 600.0
_Note = Callable[[str], None]


def watch_targets(plan: ExperimentPlan, store: Store, note: _Note, setup: SessionSetup) -> str:
    """Watches all windows of all targets; the session's name.

    A target that cannot be looked at, vanishes or restarts marks its windows, and the others go on.  ``CaptureError`` when a
    target is not there to begin with, or no window of a variant counts.  A resumed session watches what is missing.
    """
    if plan.design is not Design.CROSSOVER:
        _check_all_there(plan)
    host = host_facts()
    session = setup.resumed or _begin(store, host, plan, setup)
    if setup.resumed:
        store.resume_session(session)
    state = SessionState.INTERRUPTED
    try:
        _Watch(session, plan, store, note, host, setup.held).run_all()
        state = SessionState.FINISHED
    finally:
        store.finish_session(session, state)
    return session


def _begin(store: Store, host: HostFacts, plan: ExperimentPlan, setup: SessionSetup) -> str:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    session = store.begin_session(SessionStart(now, host.hostname, (), plan.seed, has_rounds=True))
    for name, content in setup.documents:
        store.put_document(session, name, content)
    return session


def _check_all_there(plan: ExperimentPlan) -> None:
    counted = [target for target in plan.targets if not target.is_excluded]
    for target, moment in zip(counted, _look_at_all(counted, window_rule(plan)), strict=True):
        if moment.failure:
            raise CaptureError(
                f"target {target.node} ({target.variant}): {moment.failure}; exclude = true leaves it out of the comparison"
            )


def window_rule(plan: ExperimentPlan) -> WindowRule:
    return WindowRule(plan.window_s, plan.settle_s, tuple(parse_series(metric.name, metric.spec) for metric in plan.metrics))


def _look_at_all(targets: Sequence[PlanTarget], rule: WindowRule) -> list[TargetMoment]:
    """At the same time: one that answers slowly must not make the others' windows longer."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers=max(1, min(32, len(targets)))) as pool:
        return list(pool.map(lambda target: look_at_target(target, rule.pages), targets))


@dataclass(slots=True)
class _Watch:
    """A session under way.  ``held``: see ``SessionSetup``.

    ``_stored``: (variant, node, round) of every window in the store, with whether it counts.
    """

    session: str
    plan: ExperimentPlan
    store: Store
    note: _Note
    host: HostFacts
    held: tuple[int, ...]
    _stored: dict[tuple[str, str, int], bool] = field(default_factory=dict)

    def run_all(self) -> None:
        for run in self.store.runs(self.session):
            identity = self.store.load(run).info.identity
            self._stored[identity.variant, identity.instance, identity.round] = not run.summary.failure
        periods = target_periods(self.plan)
        windows = sum(len(period.rounds) for period in periods)
        self.note(
            f"session {self.session}: {len(self.plan.targets)} targets, {windows} windows of {self.plan.window_s:g} s, "
            f"about {(windows * self.plan.window_s + len(periods) * self.plan.settle_s) / 60:.1f} min"
        )
        for period in periods:
            if any(self._missing(period, number) for number in period.rounds):
                self._run_period(period)
        self._check_variants()

    def _missing(self, period: Period, number: int) -> list[PlanTarget]:
        return [target for target in period.targets if (target.variant, target.node, number) not in self._stored]

    def _run_period(self, period: Period) -> None:
        unswapped = {target.node: self._swap(target) for target in period.targets} if self.plan.swap else {}
        if self.plan.settle_s:
            self.note(f"waiting for {self.plan.settle_s:g} s until everything has settled")
            time.sleep(self.plan.settle_s)
        for number in period.rounds:
            missing = self._missing(period, number)
            if missing:
                self._run_window(missing, number, unswapped)
                self.store.finish_round(self.session, number)

    def _swap(self, target: PlanTarget) -> str:
        """What went wrong, or ""."""
        command = replaced(self.plan.swap, {"node": target.node, "variant": target.variant})
        self.note(f"{target.node}: becomes {target.variant}")
        with self.store.working_directory() as directory:
            output = directory / "swap"
            done = run_tree(TreeCommand(command, Path.cwd(), output, timeout_s=SWAP_TIMEOUT_S, held=self.held))
            printed = output_tail(output)
        if done.timed_out:
            return f"swap took more than {SWAP_TIMEOUT_S / 60:.0f} min"
        return with_last_line(f"swap ended with {done.exit_code}", printed) if done.exit_code else ""

    def _run_window(self, targets: Sequence[PlanTarget], number: int, unswapped: dict[str, str]) -> None:
        rule = window_rule(self.plan)
        started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        before = _look_at_all(targets, rule)
        time.sleep(rule.window_s)
        after = _look_at_all(targets, rule)
        for target, first, last in zip(targets, before, after, strict=True):
            failure = unswapped.get(target.node, "")
            outcome = RunOutcome(failure=failure) if failure else window_outcome(target, first, last, rule)
            self._add(target, number, outcome, started_at)
        if not any(self._stored.values()):
            raise CaptureError("no target could be measured in the first window, and nothing more was watched: see above")

    def _add(self, target: PlanTarget, number: int, outcome: RunOutcome, started_at: str) -> None:
        position = len(self._stored)
        identity = RunIdentity(self.session, target.variant, number, RunMode.PLAIN, position, instance=target.node)
        info = CaptureInfo(identity, host=self.host, outcome=outcome, started_at=started_at)
        self.store.add(empty_capture(info))
        self._stored[target.variant, target.node, number] = not outcome.failure
        from reports.quantities import scale_for

        values = [f"{found.name} {scale_for([found.value], found.unit).quantity(found.value)}" for found in outcome.metrics]
        failure = [f"left out: {outcome.failure}"] if outcome.failure else []
        self.note("  ".join([f"window {number + 1}", target.variant, target.node, *values, *failure]))

    def _check_variants(self) -> None:
        for variant in self.plan.variants:
            if not any(counts for (name, _, _), counts in self._stored.items() if name == variant.name):
                raise CaptureError(f"no window of {variant.name} counts; `slotscope show {self.session}` says why")
