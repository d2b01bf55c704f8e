"""From an experiment's session to what it found."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from profiler.analysis.comparison.builds_of_nodes import build_warnings
from profiler.analysis.comparison.compare import CompareOptions, compare_arms
from profiler.analysis.comparison.control import ArmPair, against_control
from profiler.analysis.comparison.gain import gain_attribution
from profiler.analysis.comparison.ladder import ladder
from profiler.analysis.comparison.per_unit import condition_per_unit, control_per_unit
from profiler.analysis.quality.failed_runs import failed_runs
from profiler.errors import AnalysisError, UsageError
from profiler.experiment.experiment_session import stored_record
from profiler.model.comparison import Comparison, Verdict
from profiler.model.costs import ArmCosts
from profiler.model.experiment import Design, ExperimentRecord, VariantFacts
from profiler.model.experiment_result import ConditionResult, ExperimentResult, Ladder
from profiler.model.headline import headline_metric
from profiler.model.quality import ReportWarning
from profiler.model.quick_dataclass import dataclass
from profiler.pipeline import AnalysisOptions, Arm, Symbolizer, arm_costs
from profiler.store.records import StoredSession
from profiler.store.store import Store

_FLAGGED = (Verdict.FASTER, Verdict.SLOWER)


@dataclass(frozen=True, slots=True)
class StoredExperiment:
    session: StoredSession
    record: ExperimentRecord


@dataclass(frozen=True, slots=True)
class Evaluation:
    """``arms``: the costs behind ``result``, by condition and then by variant, both in the record's order."""

    result: ExperimentResult
    arms: tuple[ArmCosts, ...]


def find_experiment(store: Store, name: str) -> StoredExperiment:
    """The session of that name, or the latest of an experiment of that name, or with "" the latest of any.

    ``UsageError`` when there is none.
    """
    for session in reversed(store.sessions()):
        record = stored_record(store, session.name)
        if record is not None and name in ("", "last", session.name, record.name):
            return StoredExperiment(session, record)
    if name in ("", "last"):
        raise UsageError("no experiment has been run yet; `slotscope experiment run PLAN.toml` does")
    raise UsageError(f"{name!r}: no experiment and no session of one has this name; `slotscope list` shows what there is")


@dataclass(frozen=True, slots=True)
class Evaluator:
    """How experiments of a store are looked at.  ``margin``: changes up to it count as none, a fraction of the baseline's
    total (of its own mean, for a metric)."""

    store: Store
    options: AnalysisOptions
    margin: float
    symbolizer: Symbolizer
    progress: Callable[[str], None]

    def evaluate(self, experiment: StoredExperiment) -> Evaluation:
        """Comparisons under every condition, shares of the gain, steps and controls.

        ``AnalysisError`` when an arm has no valid run: a session that was cut short too early.
        """
        record, dimension = experiment.record, self.options.dimensions[0]
        names = condition_names(record)
        by_condition = [self.costs(experiment, condition) for condition in names]
        options = CompareOptions(dimension=dimension, margin=self.margin)
        conditions = tuple(
            _condition_result(record, name, arms, options) for name, arms in zip(names, by_condition, strict=True)
        )
        failures = failed_runs([arm for arms in by_condition for arm in arms])
        result = ExperimentResult(
            session=experiment.session.name,
            started_at=experiment.session.start.started_at,
            record=record,
            conditions=conditions,
            controls=tuple(
                control_per_unit(against_control(treated, held, dimension, self.margin), record.per)
                for treated, held in control_pairs(record, by_condition)
            ),
            repeated=failures.repeated,
            left_out=failures.left_out,
            warnings=(*_warnings(conditions, record), *_warnings_of_nodes(by_condition)),
        )
        return Evaluation(result, tuple(arm for arms in by_condition for arm in arms))

    def costs(self, experiment: StoredExperiment, condition: str) -> list[ArmCosts]:
        """Of every variant under the condition, the baseline first, then the others in the record's order."""
        session = experiment.session.name
        found = []
        for variant in _baseline_first(experiment.record):
            label = f"{variant.name}@{condition}" if condition else variant.name
            runs = self.store.runs(session, label)
            if all(run.summary.failure for run in runs):
                why = f" (the last one failed: {runs[-1].summary.failure})" if runs else ""
                raise AnalysisError(f"session {session}: no finished run of {label}{why}; go on with `experiment run --resume`")
            self.progress(f"{label}: loading {len(runs)} runs")
            arm = Arm(label, tuple(self.store.load(run) for run in runs))
            found.append(arm_costs(arm, self.options, self.symbolizer, self.progress))
        return found


def condition_names(record: ExperimentRecord) -> tuple[str, ...]:
    """In the plan's order; one empty name where there is no condition."""
    return tuple(condition.name for condition in record.conditions) or ("",)


def _baseline_first(record: ExperimentRecord) -> list[VariantFacts]:
    return sorted(record.variants, key=lambda variant: variant.name != record.baseline)


def _condition_result(
    record: ExperimentRecord, condition: str, arms: Sequence[ArmCosts], options: CompareOptions
) -> ConditionResult:
    baseline, candidates = arms[0], arms[1:]
    comparison = compare_arms(baseline, candidates, options)
    held = _held_against_the_profile(record, comparison)
    gains = tuple(gain_attribution(baseline, candidate, options.dimension, held) for candidate in candidates)
    steps = _ladder(record, arms, comparison, options)
    return condition_per_unit(ConditionResult(condition, comparison, gains, steps), record.per)


def _held_against_the_profile(record: ExperimentRecord, comparison: Comparison) -> tuple[str, ...]:
    """Names of the metrics that should change as the profile's total does: the primary one or an only one.  Of several, any may
    time a part of the program, whose change by another fraction says nothing."""
    measured = {metric.row.name for candidate in comparison.candidates for metric in candidate.metrics}
    if record.primary in measured:
        return (record.primary,)
    return ("wall",) if len(record.metrics) > 1 and "wall" in measured else ()


def _ladder(
    record: ExperimentRecord, arms: Sequence[ArmCosts], comparison: Comparison, options: CompareOptions
) -> Ladder | None:
    """Steps are what stands behind the baseline, A/A controls aside; one step is no ladder."""
    variants = _baseline_first(record)
    steps = [(arm, variant) for arm, variant in zip(arms, variants, strict=True) if not variant.control_of]
    if len(steps) < 3 or record.design is not Design.INTERLEAVED:
        return None
    names = {arm.name for arm, _ in steps}
    quantity = headline_metric(record, [candidate for candidate in comparison.candidates if candidate.name in names])
    if quantity is None:
        return None
    return ladder([arm for arm, _ in steps], options, quantity, [variant.note for _, variant in steps[1:]])


def control_pairs(record: ExperimentRecord, by_condition: Sequence[Sequence[ArmCosts]]) -> list[tuple[ArmPair, ArmPair]]:
    """Every candidate under every condition that has a control under the same load, and under that control.
    ``by_condition``: arms in the order of the record's conditions, the baseline first."""
    controls = {condition.load: row for row, condition in enumerate(record.conditions) if condition.is_control}
    found = []
    for row, condition in enumerate(record.conditions):
        control = controls.get(condition.load, row)
        for column in range(1, len(record.variants)) if row != control else ():
            treated, held = (
                ArmPair(record.conditions[place].name, by_condition[place][0], by_condition[place][column])
                for place in (row, control)
            )
            found.append((treated, held))
    return found


def _warnings_of_nodes(by_condition: Sequence[Sequence[ArmCosts]]) -> list[ReportWarning]:
    """Of experiments whose variants are on nodes."""
    return [warning for arms in by_condition for warning in build_warnings(arms[0], arms[1:])]


def _warnings(conditions: Sequence[ConditionResult], record: ExperimentRecord) -> tuple[ReportWarning, ...]:
    """A difference between a build and itself says that the experiment sees more than the build."""
    repeats = {variant.name: variant.control_of for variant in record.variants if variant.control_of}
    found = []
    for condition in conditions:
        for candidate in condition.comparison.candidates:
            name = candidate.name.partition("@")[0]
            rows = (*candidate.rows, candidate.total, *(metric.row for metric in candidate.metrics))
            flagged = [row.label for row in rows if row.verdict in _FLAGGED]
            if name in repeats and flagged:
                message = f"{candidate.name} is {repeats[name]} once more, and differs from it in {', '.join(flagged)}"
                found.append(ReportWarning("aa-differs", message, "trust no difference of that size or below"))
    return tuple(found)
