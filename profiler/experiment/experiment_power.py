"""What more runs of an experiment could show, for every comparison that it makes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from profiler.analysis.comparison.per_unit import power_per_unit
from profiler.analysis.comparison.power import RUNS, control_power, power_table
from profiler.errors import AnalysisError
from profiler.experiment.evaluate import Evaluator, StoredExperiment, condition_names, control_pairs
from profiler.model.experiment_result import ExperimentPower, PowerTable


def experiment_power(
    evaluator: Evaluator, experiment: StoredExperiment, per: float, runs: Sequence[int] = RUNS
) -> ExperimentPower:
    """Every candidate under every condition, then each against the control, in the record's order.  ``per``: work units in a
    run.

    ``AnalysisError`` when an arm has no finished run, or when no comparison has two runs of each of its arms.
    """
    tables: list[PowerTable] = []
    unknown: list[str] = []
    for judge in _judges(evaluator, experiment):
        try:
            tables.append(power_per_unit(judge(runs=runs), per))
        except AnalysisError as error:
            unknown.append(str(error))
    if not tables:
        raise AnalysisError("; ".join(unknown))
    return ExperimentPower(experiment.session.name, experiment.record.primary, tuple(tables), tuple(unknown), per)


def _judges(evaluator: Evaluator, experiment: StoredExperiment) -> Iterator[partial[PowerTable]]:
    """One per comparison; each needs the runs that are asked about."""
    record, dimension = experiment.record, evaluator.options.dimensions[0]
    by_condition = [evaluator.costs(experiment, condition) for condition in condition_names(record)]
    for arms in by_condition:
        for candidate in arms[1:]:
            yield partial(power_table, arms[0], candidate, dimension, evaluator.margin)
    for treated, held in control_pairs(record, by_condition):
        yield partial(control_power, treated, held, dimension, evaluator.margin)
