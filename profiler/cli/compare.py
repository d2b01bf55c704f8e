"""`slotscope compare`: what a build changed."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING

from profiler.cli.context import CliContext, terminal_style
from profiler.cli.fail_on import exceeded, parse_limit, undecidable
from profiler.cli.options import ReadingOptions, add_selection_options, add_table_options, reading_options

if TYPE_CHECKING:
    from reports.comparison_report import ComparisonReport

NAME = "compare"
HELP = "Compare arms: what a build changed, with intervals and verdicts"
EXIT_LIMIT_EXCEEDED = 3
EXIT_NOT_CHECKED = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("baseline", metavar="BASELINE", help="selector of the runs to compare with")
    parser.add_argument("candidates", nargs="+", metavar="CANDIDATE", help="selectors of the runs that changed")
    add_selection_options(parser)
    add_table_options(parser)
    group = parser.add_argument_group("what is tested")
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
        help="exit with 3 when the whole interval of the total, or of ROW, lies above PCT %% of the baseline; may be repeated",
    )


def run(arguments: argparse.Namespace, context: CliContext) -> int:
    options = reading_options(arguments)
    report = _comparison_report(arguments, options, context)
    limits = arguments.fail_on or []
    broken = exceeded(report.comparison, limits)
    context.stdout.write(_rendered(report, options, context))
    context.stdout.flush()
    unchecked = undecidable(report.comparison, limits)
    for line in [*unchecked, *broken]:
        print(f"slotscope: {line}", file=context.stderr)
    if broken:
        return EXIT_LIMIT_EXCEEDED
    return EXIT_NOT_CHECKED if unchecked else 0


def _comparison_report(arguments: argparse.Namespace, options: ReadingOptions, context: CliContext) -> ComparisonReport:
    from profiler.analysis.compare import CompareOptions, compare_arms
    from profiler.cli.load_arms import load_arms, symbol_tools
    from profiler.cli.progress import SlowProgress
    from profiler.pipeline import arm_costs
    from reports.comparison_report import ComparisonReport

    tools = symbol_tools(options.debug_dirs)
    with SlowProgress(context.stderr) as progress:
        arms = load_arms([arguments.baseline, *arguments.candidates], context, tools.locator, progress)
        analysis = options.analysis(arms)
        costs = tuple(arm_costs(arm, analysis, tools.symbolizer, progress) for arm in arms)
    compare_options = CompareOptions(dimension=options.by, margin=arguments.margin, metrics=tuple(arguments.metric or ()))
    return ComparisonReport(compare_arms(costs[0], costs[1:], compare_options), costs, options.rows)


def _rendered(report: ComparisonReport, options: ReadingOptions, context: CliContext) -> str:
    match options.format:
        case "json":
            from reports.json_report import render_comparison_json

            return render_comparison_json(report.comparison)
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
