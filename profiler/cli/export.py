"""`slotscope export`: call stacks for other tools."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.cli.context import CliContext
from profiler.cli.options import ReadingOptions, add_selection_options, reading_options
from profiler.errors import SlotscopeError, UsageError

if TYPE_CHECKING:
    from profiler.model.call_stacks import CallStacks

NAME = "export"
HELP = "Write call stacks as a file for other tools"
SUFFIXES = {"speedscope": ".speedscope.json", "folded": ".folded"}
STANDARD_OUTPUT = "-"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("selectors", nargs="+", metavar="SELECTOR", help="the runs; one profile per selector")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="where to write; - is standard output")
    parser.add_argument(
        "--format", choices=tuple(SUFFIXES), help=f"default: from FILE's suffix, {' or '.join(SUFFIXES.values())}"
    )
    parser.add_argument(
        "--category-roots", action="store_true", help="speedscope: put every stack under its category, to see time by category"
    )
    add_selection_options(parser)


def run(arguments: argparse.Namespace, context: CliContext) -> int:
    options = reading_options(arguments)
    chosen = arguments.format or format_of(arguments.output)
    if chosen == "folded" and len(arguments.selectors) > 1:
        raise UsageError("a folded file holds one arm: export each selector to a file of its own, or use .speedscope.json")
    stacks = _call_stacks(arguments.selectors, options, context)
    data = _rendered(chosen, stacks, arguments.category_roots)
    if arguments.output == STANDARD_OUTPUT:
        context.stdout.write(data.decode())
    else:
        _write(Path(arguments.output), data)
    return 0


def format_of(output: str) -> str:
    """The format that a file name's suffix stands for; ``UsageError`` names those there are."""
    for name, suffix in SUFFIXES.items():
        if output.endswith(suffix):
            return name
    raise UsageError(f"{output}: the suffix names no format; supported are {', '.join(SUFFIXES.values())} (or use --format)")


def _call_stacks(selectors: Sequence[str], options: ReadingOptions, context: CliContext) -> list[CallStacks]:
    from profiler.cli.load_arms import load_arms
    from profiler.cli.progress import SlowProgress
    from profiler.pipeline import arm_call_stacks
    from symbolize.symbol_tools import symbol_tools

    tools = symbol_tools(options.debug_dirs, context.debug_directory)
    stacks = []
    with SlowProgress(context.stderr) as progress:
        arms = load_arms(selectors, context, tools.locator, progress)
        analysis = options.analysis(arms)
        for arm in arms:
            progress(f"symbolizing {arm.name}")
            stacks.append(arm_call_stacks(arm, analysis, tools.symbolizer))
    return stacks


def _rendered(chosen: str, stacks: Sequence[CallStacks], category_roots: bool) -> bytes:
    if chosen == "folded":
        from reports.folded import render_folded

        return render_folded(stacks[0]).encode()
    from reports.speedscope import render_speedscope

    return render_speedscope(stacks, " and ".join(arm.arm for arm in stacks), category_roots)


def _write(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise SlotscopeError(f"{path}: cannot be written: {error.strerror}") from error
