"""`slotscope explain`: why a function's time stands in its category."""

from __future__ import annotations

import argparse

from profiler.cli.context import CliContext, terminal_style
from profiler.cli.options import add_selection_options, reading_options, regex_argument, row_count_argument

NAME = "explain"
HELP = "Explain which rule put a function's time into its category"
DEFAULT_LIMIT = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("selector", nargs="?", default="last", metavar="SELECTOR", help="the runs (default: last)")
    parser.add_argument(
        "--function",
        required=True,
        type=regex_argument,
        metavar="REGEX",
        help="functions to explain: on the way from the innermost frame to the one that a rule took",
    )
    parser.add_argument(
        "--limit",
        type=row_count_argument,
        default=DEFAULT_LIMIT,
        metavar="N",
        help=f"explanations to show, 0 = all (default: {DEFAULT_LIMIT})",
    )
    add_selection_options(parser)


def run(arguments: argparse.Namespace, context: CliContext) -> int:
    from profiler.analysis.attribution.select_event import select_event
    from profiler.cli.load_arms import load_arms
    from profiler.cli.progress import SlowProgress
    from profiler.pipeline import explain_function
    from reports.terminal_explanation import render_explanations
    from symbolize.symbol_tools import symbol_tools

    options = reading_options(arguments)
    tools = symbol_tools(options.debug_dirs, context.debug_directory)
    with SlowProgress(context.stderr) as progress:
        arms = load_arms([arguments.selector], context, tools.locator, progress)
        progress(f"explaining {arms[0].name}")
        analysis = options.analysis(arms)
        explanations = explain_function(arms[0], arguments.function, analysis, tools.symbolizer)
    unit = select_event(arms[0].captures, options.event).unit
    context.stdout.write(render_explanations(explanations, unit, arguments.limit, terminal_style(context)))
    return 0
