"""An experiment from its plan to a finished session: builds, the record of what it is, and its runs; or taken up again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from profiler.codec.json_values import JsonShapeError, from_json, to_json
from profiler.errors import StoreError, UsageError
from profiler.experiment.binaries.builds import BuildPlace, BuiltVariant, build_variants, file_digest
from profiler.experiment.experiment_lock import experiment_lock
from profiler.experiment.plan.experiment_plan import ExperimentPlan, PlanMetric, cpu_per_request
from profiler.experiment.plan.plan_check import AA_SUFFIX
from profiler.experiment.plan.plan_check_services import CPU_TIME_METRIC
from profiler.experiment.plan.recording_plan import RecordPlan
from profiler.experiment.run.arm_metrics import output_metrics
from profiler.experiment.run.arms import arm_conditions, experiment_arms
from profiler.experiment.run.executor import Executor, RunExecutor
from profiler.experiment.run.preparation import Preparation
from profiler.experiment.run.program_workload import ProgramWorkload
from profiler.experiment.run.progress import RecordProgress
from profiler.experiment.run.runner import SessionSetup, record_session
from profiler.experiment.run.service_workload import ServiceWorkload
from profiler.experiment.run.workplace import Workplace
from profiler.experiment.targets.target_session import watch_targets
from profiler.model.experiment import ConditionFacts, Direction, ExperimentRecord, InputFacts, MetricFacts, VariantFacts
from profiler.model.quick_dataclass import dataclass
from profiler.store.records import SessionState, StoredSession
from profiler.store.store import Store

DOCUMENT = "experiment.json"
BUILDS = "builds"


@dataclass(frozen=True, slots=True)
class ExperimentProgress:
    """``note``: a line of text about the work before the first run; ``runs``: of the runs themselves."""

    note: Callable[[str], None]
    runs: RecordProgress


def run_experiment(plan: ExperimentPlan, store: Store, progress: ExperimentProgress, is_resumed: bool) -> str:
    """Builds and runs; the session's name.

    With ``is_resumed`` goes on with the latest session of this very plan that was cut short; ``UsageError`` when there is none.
    ``CaptureError`` for builds and runs that fail.
    """
    directory = store.directory / BUILDS / plan.name
    with experiment_lock(directory, plan.name) as lock:
        if is_resumed:
            return _resumed(plan, store, progress, lock)
        built = build_variants(plan, BuildPlace(directory, lock, progress.note))
        record = encode_record(experiment_record(plan, built))
        return _carried_out(plan, built, store, progress, SessionSetup(documents=((DOCUMENT, record),), held=(lock,)))


def _carried_out(
    plan: ExperimentPlan, built: Sequence[BuiltVariant], store: Store, progress: ExperimentProgress, setup: SessionSetup
) -> str:
    if plan.targets:
        return watch_targets(plan, store, progress.note, setup)
    arms = {arm.arm.label: arm for arm in experiment_arms(plan, built)}

    def executor(preparation: Preparation, place: Workplace) -> Executor:
        if plan.loads:
            return RunExecutor(preparation, place, ServiceWorkload(preparation.plan, place, arms))
        metrics = {label: arm.metrics for label, arm in arms.items()}
        return RunExecutor(preparation, place, ProgramWorkload(preparation.plan, place, metrics))

    return record_session(record_plan(plan, built), store, progress.runs, executor, setup).session


def record_plan(plan: ExperimentPlan, built: Sequence[BuiltVariant]) -> RecordPlan:
    """What the runner is to do."""
    return RecordPlan(
        command=plan.command or plan.loads[0].service,
        arms=tuple(arm.arm for arm in experiment_arms(plan, built)),
        seed=plan.seed,
        runs=plan.runs,
        warmup=plan.warmup,
        profile=plan.profile,
        event=plan.event,
        frequency_hz=plan.frequency_hz,
        call_graph=plan.call_graph,
        metrics=output_metrics(plan),
        before=plan.before,
        drop_caches=plan.drop_caches,
        inputs=tuple(given.path for given in plan.inputs),
        cpus=plan.cpus,
        phase=plan.phase,
        keep_raw=plan.keep_raw,
        timeout_s=plan.timeout_s,
        retries=plan.retries,
    )


def experiment_record(plan: ExperimentPlan, built: Sequence[BuiltVariant]) -> ExperimentRecord:
    """What is kept beside the runs.  ``UsageError`` for an input that cannot be read."""
    return ExperimentRecord(
        name=plan.name,
        design=plan.design,
        runs=plan.runs,
        seed=plan.seed,
        baseline=plan.baseline,
        command=plan.command or (plan.loads[0].service if plan.loads else ()),
        variants=_variant_facts(plan, built),
        conditions=_condition_facts(plan),
        inputs=tuple(_input_facts(given.name, given.path, given.note) for given in plan.inputs),
        metrics=_metric_facts(plan),
        primary=plan.primary,
        per=plan.per,
        margin=plan.margin,
        phase=plan.phase,
        plan_path=str(plan.path),
        plan_text=plan.text,
    )


def encode_record(record: ExperimentRecord) -> bytes:
    return json.dumps(to_json(record), ensure_ascii=False, indent=1).encode("utf-8", "surrogateescape") + b"\n"


def stored_record(store: Store, session: str) -> ExperimentRecord | None:
    """None for a session that is no experiment; ``StoreError`` for a damaged document."""
    data = store.document(session, DOCUMENT)
    if data is None:
        return None
    try:
        return from_json(ExperimentRecord, json.loads(data.decode("utf-8", "surrogateescape")))
    except (ValueError, RecursionError, JsonShapeError) as error:
        raise StoreError(f"session {session}: {DOCUMENT} is damaged ({error})") from None


def _resumed(plan: ExperimentPlan, store: Store, progress: ExperimentProgress, lock: int) -> str:
    session, record = _unfinished(plan, store)
    progress.note(f"taking up session {session.name} again")
    built = _built_before(plan, record)
    _check_builds(record, session.name)
    setup = SessionSetup(resumed=session.name, held=(lock,))
    return _carried_out(replace(plan, seed=record.seed), built, store, progress, setup)


def _unfinished(plan: ExperimentPlan, store: Store) -> tuple[StoredSession, ExperimentRecord]:
    """The latest session of a plan of this name that did not finish."""
    others = []
    for session in reversed(store.sessions()):
        record = stored_record(store, session.name) if session.state is not SessionState.FINISHED else None
        if record is not None and record.name == plan.name:
            if record.plan_text == plan.text:
                return session, record
            others.append(session.name)
    if others:
        raise UsageError(
            f"{plan.path}: changed since session {others[0]} began: its runs would be of two kinds; start anew without --resume"
        )
    raise UsageError(f"{plan.path}: no session of experiment {plan.name!r} was cut short; start one without --resume")


def _built_before(plan: ExperimentPlan, record: ExperimentRecord) -> tuple[BuiltVariant, ...]:
    facts = {variant.name: variant for variant in record.variants}
    return tuple(
        BuiltVariant(variant, facts[variant.name].binary, facts[variant.name].profile_binary, facts[variant.name])
        for variant in plan.variants
    )


def _check_builds(record: ExperimentRecord, session: str) -> None:
    """A binary that was rebuilt since would make two builds pass for one."""
    for variant in record.variants:
        found = file_digest(Path(variant.binary)) if variant.sha256 else ""
        if variant.sha256 and not found:
            raise UsageError(
                f"{variant.binary} cannot be read any more: bring it back as it was when session {session} began, or start "
                "anew without --resume"
            )
        if found != variant.sha256:
            raise UsageError(f"{variant.binary} changed since session {session} began: start anew without --resume")


def _variant_facts(plan: ExperimentPlan, built: Sequence[BuiltVariant]) -> tuple[VariantFacts, ...]:
    facts = []
    for variant in built:
        facts.append(variant.facts)
        if plan.is_aa and variant.plan.name == plan.baseline:
            facts.append(replace(variant.facts, name=plan.baseline + AA_SUFFIX, control_of=plan.baseline))
    return tuple(facts)


def _input_facts(name: str, path: Path, note: str) -> InputFacts:
    try:
        return InputFacts(name, str(path), path.stat().st_size, file_digest(path), note)
    except OSError as error:
        raise UsageError(f"input {name!r}: {path}: {error.strerror}") from None


def _condition_facts(plan: ExperimentPlan) -> tuple[ConditionFacts, ...]:
    """None for an experiment that runs everything in one way."""
    return tuple(
        ConditionFacts(
            name=held.name,
            args=held.condition.args,
            env=held.condition.env,
            is_control=held.condition.is_control,
            note=held.condition.note,
            load=held.load.name if held.load is not None else "",
        )
        for held in arm_conditions(plan)
        if held.name
    )


def _metric_facts(plan: ExperimentPlan) -> tuple[MetricFacts, ...]:
    """Of the plan, and those that come with its loads and targets."""
    found = [MetricFacts(metric.name, metric.direction, _source(metric)) for metric in plan.metrics]
    for load in plan.loads:
        if load.requests:
            found.append(MetricFacts(cpu_per_request(load), Direction.LOWER, f"CPU time of the service / {load.requests}"))
    if any(target.finder.is_given or target.process for target in plan.targets):
        found.append(MetricFacts(CPU_TIME_METRIC, Direction.LOWER, "CPU time of the process and its children in a window"))
    return tuple(found)


def _source(metric: PlanMetric) -> str:
    where = f" of {shlex.join(metric.command)}" if metric.command else ""
    return f"{metric.kind}: {metric.spec}{where}{f' from {metric.from_load}' if metric.from_load else ''}"
