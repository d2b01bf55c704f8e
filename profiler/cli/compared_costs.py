"""What the arms cost that a command compares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from profiler.cli.context import CliContext
from profiler.cli.options import ReadingOptions

if TYPE_CHECKING:
    from profiler.model.costs import ArmCosts


def costs_of(selectors: Sequence[str], options: ReadingOptions, context: CliContext) -> tuple[ArmCosts, ...]:
    """One per selector, in order; arms without profiled runs have their times and metrics alone."""
    from profiler.cli.load_arms import load_arms
    from profiler.cli.progress import SlowProgress
    from profiler.pipeline import arm_costs
    from symbolize.symbol_tools import symbol_tools

    tools = symbol_tools(options.debug_dirs, context.debug_directory)
    with SlowProgress(context.stderr) as progress:
        arms = load_arms(selectors, context, tools.locator, progress, needs_profile=False)
        analysis = options.analysis(arms)
        return tuple(arm_costs(arm, analysis, tools.symbolizer, progress) for arm in arms)
