"""`slotscope compare`: what a build changed."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING

from profiler.cli.context import CliContext, terminal_style
from profiler.cli.fail_on import check_limits, parse_limit
from profiler.cli.options import ReadingOptions, add_selection_options, add_table_options, reading_options

if TYPE_CHECKING:
    from reports.comparison_report import ComparisonReport

NAME = "compare"
HELP = "Compare arms: what a build changed, with intervals and verdicts"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("baseline", metavar="BASELINE", help="selector of the runs to compare with")
    parser.add_argument("candidates", nargs="+", metavar="CANDIDATE", help="selectors of the runs that changed")
    add_selection_options(parser)
    add_table_options(parser)
    group = parser.add_argument_group("what is tested")
    group.add_argument(
        "--via",
        action="append",
        metavar="SELECTOR",
        help="the build in the middle of two that were never measured together: a variant in the sessions of both, or given "
        "twice, as measured with the baseline and with the candidate; every composed number is marked",
    )
    group.add_argument(
        "--per",
        type=_units,
        default=1.0,
        metavar="N",
        help="units of work in a run: weights and times are shown for one of them",
    )
    group.add_argument("--metric", action="append", metavar="NAME", help="only this metric or time; may be repeated")
    group.add_argument(
        "--margin",
        type=_percentage,
        default=0.01,
        metavar="PCT",
        help="differences within this part of the baseline's total count as none (default: 1)",
    )
    group.add_argument(
        "--fail-on",
        action="append",
        type=parse_limit,
        metavar="[ROW:]PCT",
        help="exit with 3 when the whole interval of the total, or of ROW (a row, a metric or metric:NAME), lies above PCT %% "
        "of the baseline; may be repeated",
    )


def run(arguments: argparse.Namespace, context: CliContext) -> int:
    options = reading_options(arguments)
    if arguments.via:
        from profiler.cli.compare_composed import composed_text

        context.stdout.write(composed_text(arguments, options, context))
        return 0
    report = _comparison_report(arguments, options, context)
    limits = arguments.fail_on or []
    checked = check_limits(report.comparison, limits)
    context.stdout.write(_rendered(report, options, context))
    context.stdout.flush()
    return checked.tell(context.stderr)


def _comparison_report(arguments: argparse.Namespace, options: ReadingOptions, context: CliContext) -> ComparisonReport:
    from profiler.analysis.comparison.compare import CompareOptions, compare_arms
    from profiler.analysis.comparison.per_unit import per_unit
    from profiler.cli.compared_costs import costs_of
    from reports.comparison_report import ComparisonReport

    costs = costs_of([arguments.baseline, *arguments.candidates], options, context)
    compare_options = CompareOptions(dimension=options.by, margin=arguments.margin, metrics=tuple(arguments.metric or ()))
    comparison = per_unit(compare_arms(costs[0], costs[1:], compare_options), arguments.per)
    return ComparisonReport(comparison, costs, options.rows, arguments.per)


def _rendered(report: ComparisonReport, options: ReadingOptions, context: CliContext) -> str:
    match options.format:
        case "json":
            from reports.json_report import render_comparison_json

            return render_comparison_json(report.comparison, report.per)
        case "csv":
            from reports.csv_report import render_comparison_csv

            return render_comparison_csv(report.comparison)
        case "markdown":
            from reports.markdown import render_comparison_markdown

            return render_comparison_markdown(report)
    from reports.terminal_comparison import render_comparison

    return render_comparison(report, terminal_style(context))


def _percentage(text: str) -> float:
    """Argument type: percent of the baseline's total, as a fraction."""
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = math.nan
    if not (0 < value < 100):
        raise argparse.ArgumentTypeError(f"{text!r} is not a percentage between 0 and 100")
    return value / 100


def _units(text: str) -> float:
    """Argument type: a number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and 1e-9 < value < 1e15):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of units of work above 0")
    return value
