"""The process that works one analysis out: the order as JSON on standard input, the answer on standard output.

What cannot be analysed is said in one line on standard error, with the exit codes of the command line.  The process ends by
itself at the time limit, also when the server that asked is gone.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.codec.json_values import from_json
from profiler.errors import AnalysisError, FormatError, StoreError, SymbolizeError, UsageError
from profiler.model.analysis_choices import MARKDOWN_ROWS
from profiler.pipeline import AnalysisOptions, Arm, arm_call_stacks, arm_costs
from profiler.service.pages.analysis.analysis_order import (
    LARGEST_ANSWER_BYTES,
    TIME_LIMIT_S,
    AnalysisOrder,
    Content,
    Format,
)
from profiler.store.debug_tree import debug_directory
from profiler.store.selectors import resolve_stored
from profiler.store.store import Store, open_store
from profiler.stored_arms import load_stored_arms, recorded_phase
from symbolize.symbol_tools import symbol_tools

if TYPE_CHECKING:
    from symbolize.symbolizer import Symbolizer


def main() -> int:
    signal.alarm(TIME_LIMIT_S)
    os.nice(5)
    order = from_json(AnalysisOrder, json.load(sys.stdin))
    try:
        answer = analysis(order)
    except (AnalysisError, FormatError, StoreError, SymbolizeError, UsageError) as error:
        print(str(error).encode("utf-8", "backslashreplace").decode(), file=sys.stderr)
        return error.exit_code
    sys.stdout.buffer.write(answer)
    return 0


def analysis(order: AnalysisOrder) -> bytes:
    """The rendered answer, UTF-8.  ``AnalysisError`` when it is too large for a page, else errors as of the pipeline."""
    store = open_store(Path(order.store), create=False)
    symbolizer = symbol_tools((), debug_directory(store.directory)).symbolizer
    answer = _ANSWERS[order.content](order, store, symbolizer)
    if len(answer) > LARGEST_ANSWER_BYTES:
        raise AnalysisError("too large for a page or a download; `slotscope export` and `report` on the server's host write it")
    return answer


def _arms(order: AnalysisOrder, store: Store, needs_profile: bool) -> tuple[Arm, ...]:
    selections = [resolve_stored(selector, store) for selector in order.selectors]
    return load_stored_arms(selections, order.selectors, store, needs_profile)


def _options(order: AnalysisOrder, phase: str) -> AnalysisOptions:
    phase = phase if order.phase is None else order.phase
    return AnalysisOptions(phase=phase, view=order.view, dimensions=(order.by,))


def _limit(order: AnalysisOrder) -> int:
    """As on the command line: Markdown is for reading, data for programs is whole."""
    return {Format.HTML: order.limit, Format.MARKDOWN: MARKDOWN_ROWS}.get(order.format, 0)


def _report(order: AnalysisOrder, store: Store, symbolizer: Symbolizer) -> bytes:
    from profiler.analysis.comparison.compare_replicates import windows_by_process
    from profiler.analysis.statistics.share_interval import share_intervals
    from reports.arm_report import ArmReport
    from reports.csv_report import render_report_csv
    from reports.html.html_report import render_report_html
    from reports.json_report import render_report_json
    from reports.markdown_report import render_report_markdown

    arms = _arms(order, store, needs_profile=True)
    costs = arm_costs(arms[0], _options(order, recorded_phase(arms)), symbolizer)
    intervals = share_intervals(costs.tables[order.by], windows_by_process(costs.infos))
    report = ArmReport(costs, order.by, intervals, _limit(order))
    renderers = {
        Format.HTML: render_report_html,
        Format.MARKDOWN: render_report_markdown,
        Format.JSON: render_report_json,
        Format.CSV: render_report_csv,
    }
    return renderers[order.format](report).encode()


def _stacks(order: AnalysisOrder, store: Store, symbolizer: Symbolizer) -> bytes:
    from reports.speedscope import render_speedscope

    arms = _arms(order, store, needs_profile=True)
    options = _options(order, recorded_phase(arms))
    stacks = [arm_call_stacks(arm, options, symbolizer) for arm in arms]
    return render_speedscope(stacks, " and ".join(arm.name for arm in arms))


def _comparison(order: AnalysisOrder, store: Store, symbolizer: Symbolizer) -> bytes:
    from profiler.analysis.comparison.compare import CompareOptions, compare_arms
    from profiler.analysis.comparison.per_unit import per_unit
    from reports.comparison_report import ComparisonReport
    from reports.csv_report import render_comparison_csv
    from reports.html.html_comparison import render_comparison_html
    from reports.json_report import render_comparison_json
    from reports.markdown import render_comparison_markdown

    arms = _arms(order, store, needs_profile=False)
    options = _options(order, recorded_phase(arms))
    costs = tuple(arm_costs(arm, options, symbolizer) for arm in arms)
    comparison = per_unit(compare_arms(costs[0], costs[1:], CompareOptions(dimension=order.by)), order.per)
    report = ComparisonReport(comparison, costs, _limit(order), order.per)
    match order.format:
        case Format.JSON:
            return render_comparison_json(comparison, order.per).encode()
        case Format.CSV:
            return render_comparison_csv(comparison).encode()
        case Format.MARKDOWN:
            return render_comparison_markdown(report).encode()
    return render_comparison_html(report).encode()


def _experiment(order: AnalysisOrder, store: Store, symbolizer: Symbolizer) -> bytes:
    from profiler.experiment.evaluate import Evaluator, find_experiment
    from reports.csv_report import render_comparison_csv
    from reports.experiment_report import ExperimentReport
    from reports.html.html_experiment import render_experiment_html
    from reports.json_experiment import render_experiment_json
    from reports.markdown_experiment import render_experiment_markdown

    experiment = find_experiment(store, order.selectors[0])
    options = _options(order, experiment.record.phase)
    evaluation = Evaluator(store, options, experiment.record.margin, symbolizer, lambda line: None).evaluate(experiment)
    report = ExperimentReport(evaluation.result, evaluation.arms, _limit(order))
    match order.format:
        case Format.JSON:
            return render_experiment_json(evaluation.result).encode()
        case Format.CSV:
            return render_comparison_csv(*(condition.comparison for condition in evaluation.result.conditions)).encode()
        case Format.MARKDOWN:
            return render_experiment_markdown(report).encode()
    return render_experiment_html(report).encode()


_ANSWERS = {
    Content.REPORT: _report,
    Content.STACKS: _stacks,
    Content.COMPARISON: _comparison,
    Content.EXPERIMENT: _experiment,
}

if __name__ == "__main__":
    sys.exit(main())
