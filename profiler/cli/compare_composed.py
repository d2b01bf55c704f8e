"""`slotscope compare --via`: two builds that were never measured together, by way of one that was measured with both."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from profiler.cli.context import CliContext, existing_store, terminal_style
from profiler.cli.options import ReadingOptions
from profiler.errors import UsageError

if TYPE_CHECKING:
    from profiler.model.experiment_result import ComposedComparison
    from profiler.store.store import Store


def composed_text(arguments: argparse.Namespace, options: ReadingOptions, context: CliContext) -> str:
    """The comparison in the format asked for.  ``UsageError`` for anything but one candidate and one or two builds between."""
    composed = _composed(arguments, options, context)
    match options.format:
        case "json":
            from reports.composed_report import render_composed_json

            return render_composed_json(composed, arguments.margin)
        case "csv":
            from reports.composed_report import render_composed_csv

            return render_composed_csv(composed)
        case "markdown":
            from reports.composed_report import render_composed_markdown

            return render_composed_markdown(composed, options.rows, arguments.margin)
    from reports.composed_report import render_composed

    return render_composed(composed, options.rows, arguments.margin, terminal_style(context))


def _composed(arguments: argparse.Namespace, options: ReadingOptions, context: CliContext) -> ComposedComparison:
    from dataclasses import replace

    from profiler.analysis.comparison.compose import Leg, compose
    from profiler.cli.compared_costs import costs_of

    if len(arguments.candidates) != 1:
        raise UsageError("--via composes one comparison: name one candidate")
    if arguments.fail_on:
        raise UsageError("--fail-on needs a comparison that was run; leave it or --via out")
    baseline, candidate = arguments.baseline, arguments.candidates[0]
    costs = costs_of([baseline, *_via(arguments.via, baseline, candidate, context), candidate], options, context)
    composed = compose(Leg(costs[0], costs[1]), Leg(costs[2], costs[3]), options.by, arguments.margin)
    if len(arguments.via) == 1:
        composed = replace(composed, via=arguments.via[0])
    if not arguments.metric:
        return composed
    known = [row.name for row in composed.metrics]
    if unknown := [name for name in arguments.metric if name not in known]:
        raise UsageError(f"no metric or time {unknown[0]!r} in both pairs; there are: {', '.join(known) or 'none'}")
    return replace(composed, metrics=tuple(row for row in composed.metrics if row.name in arguments.metric))


def _via(given: list[str], baseline: str, candidate: str, context: CliContext) -> tuple[str, str]:
    """Selectors of the build in the middle: as measured with the baseline, and with the candidate."""
    if len(given) > 2:
        raise UsageError("--via may be given twice: the build in the middle as measured with either")
    if len(given) == 2:
        return given[0], given[1]
    store = existing_store(context)
    sessions = [_session(selector, store) for selector in (baseline, candidate)]
    if sessions[0] == sessions[1]:
        raise UsageError(f"{baseline} and {candidate} were measured together in session {sessions[0]}: leave --via out")
    return f"{given[0]}={sessions[0]}/{given[0]}", f"{given[0]}={sessions[1]}/{given[0]}"


def _session(selector: str, store: Store | None) -> str:
    from profiler.store.selectors import resolve

    runs = resolve(selector, store).runs
    if not runs:
        raise UsageError(f"{selector} is no session of the store: give --via twice, as measured with either")
    return runs[0].key.session
