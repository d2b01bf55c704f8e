"""`slotscope report`: where the time went."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from profiler.cli.context import CliContext, terminal_style
from profiler.cli.options import ReadingOptions, add_selection_options, add_table_options, reading_options

if TYPE_CHECKING:
    from reports.arm_report import ArmReport

NAME = "report"
HELP = "Show where the time of one arm went"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("selector", nargs="?", default="last", metavar="SELECTOR", help="the runs (default: last)")
    add_selection_options(parser)
    add_table_options(parser)


def run(arguments: argparse.Namespace, context: CliContext) -> int:
    options = reading_options(arguments)
    report = _arm_report(arguments.selector, options, context)
    context.stdout.write(_rendered(report, options, context))
    return 0


def _arm_report(selector: str, options: ReadingOptions, context: CliContext) -> ArmReport:
    from profiler.analysis.comparison.compare_replicates import windows_by_process
    from profiler.analysis.statistics.share_interval import share_intervals
    from profiler.cli.load_arms import load_arms
    from profiler.cli.progress import SlowProgress
    from profiler.pipeline import arm_costs
    from reports.arm_report import ArmReport
    from symbolize.symbol_tools import symbol_tools

    tools = symbol_tools(options.debug_dirs, context.debug_directory)
    with SlowProgress(context.stderr) as progress:
        arms = load_arms([selector], context, tools.locator, progress)
        costs = arm_costs(arms[0], options.analysis(arms), tools.symbolizer, progress)
    intervals = share_intervals(costs.tables[options.by], windows_by_process(costs.infos))
    return ArmReport(costs, options.by, intervals, options.rows)


def _rendered(report: ArmReport, options: ReadingOptions, context: CliContext) -> str:
    match options.format:
        case "json":
            from reports.json_report import render_report_json

            return render_report_json(report)
        case "csv":
            from reports.csv_report import render_report_csv

            return render_report_csv(report)
        case "markdown":
            from reports.markdown_report import render_report_markdown

            return render_report_markdown(report)
    from reports.terminal_report import render_report

    return render_report(report, terminal_style(context))
