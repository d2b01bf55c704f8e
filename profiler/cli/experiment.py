"""`slotscope experiment`: repeated, scheduled comparisons from a plan, and what they found."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.cli.aggregator_client import add_server_options, server_options
from profiler.cli.context import CliContext, terminal_style
from profiler.cli.fail_on import check_conditions, parse_limit
from profiler.cli.options import add_selection_options, add_table_options, reading_options
from profiler.cli.termination import signals_as_interrupts
from profiler.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from profiler.experiment.evaluate import Evaluator, StoredExperiment
    from profiler.store.store import Store

NAME = "experiment"
HELP = "Run a plan of builds, conditions and inputs, and show what it found"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="run|show|power|watch|cancel", help="one of these")
    running = actions.add_parser("run", help="carry a plan out", description="Carry a plan out.")
    running.add_argument("plan", metavar="PLAN.toml", type=Path)
    running.add_argument("--resume", action="store_true", help="go on with the latest session of the plan that was cut short")
    running.add_argument("--dry-run", action="store_true", help="check the plan and show what would be run; nothing is")
    add_server_options(running, "hand it to this aggregator, whose agents have its targets")
    showing = actions.add_parser("show", help="what an experiment found", description="What an experiment found.")
    _add_session(showing)
    add_selection_options(showing)
    add_table_options(showing)
    showing.add_argument("--redact", action="store_true", help="replace host names and home directories")
    showing.add_argument(
        "--fail-on",
        action="append",
        type=parse_limit,
        metavar="[ROW:]PCT",
        help="exit with 3 when the total, ROW or the metric ROW got worse by more than PCT %% of the baseline under any "
        "condition, the whole interval being beyond; may be repeated",
    )
    showing.add_argument("--plots", metavar="DIR", type=Path, help="also write plots, as SVG and PNG, into this directory")
    add_server_options(showing, "show an experiment of this aggregator, in Markdown or JSON (default: of the store here)")
    powering = actions.add_parser("power", help="what more runs could show", description="What more runs could show.")
    _add_session(powering)
    add_selection_options(powering)
    add_table_options(powering, formats=("table", "markdown", "json"))
    for name, what in (("watch", "follow an experiment of an aggregator"), ("cancel", "end an experiment of an aggregator")):
        remote = actions.add_parser(name, help=what, description=f"{what.capitalize()}.")
        remote.add_argument("session", metavar="SESSION")
        add_server_options(remote, "the aggregator", needed=True)


def run(arguments: argparse.Namespace, context: CliContext) -> int:
    actions: dict[str, Callable[[argparse.Namespace, CliContext], int]] = {
        "run": _run,
        "show": _show,
        "power": _power,
        "watch": _watch,
        "cancel": _cancel,
    }
    return actions[arguments.action](arguments, context)


def _add_session(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", nargs="?", default="", metavar="SESSION", help="session or experiment (default: the latest)")


def _run(arguments: argparse.Namespace, context: CliContext) -> int:
    from profiler.cli.record_progress import RecordingLines
    from profiler.experiment.experiment_session import ExperimentProgress, run_experiment
    from profiler.experiment.plan.plan_file import read_plan
    from profiler.store.store import open_store

    plan = read_plan(arguments.plan)
    if arguments.dry_run:
        from profiler.cli.experiment_preview import preview

        context.stdout.write(preview(plan, context))
        return 0
    options = server_options(arguments)
    if options is not None:
        from profiler.cli.experiment_remote import run_on_server

        if arguments.resume:
            raise UsageError("--resume is for experiments of this machine; an aggregator goes on by itself")
        with signals_as_interrupts():
            return run_on_server(plan, options, context)
    if plan.is_over_agents:
        command = f"{shlex.join(('slotscope', 'experiment', 'run', str(arguments.plan)))} --server URL"
        raise UsageError(f"{plan.path}: its targets are on agents: `{command}` hands it to their aggregator")
    store = open_store(context.store_directory, create=True)
    progress = ExperimentProgress(lambda line: print(line, file=context.stderr, flush=True), RecordingLines(context.stderr))
    with signals_as_interrupts():
        try:
            session = run_experiment(plan, store, progress, is_resumed=arguments.resume)
        except KeyboardInterrupt:
            words = ("slotscope", "experiment", "run", str(arguments.plan), "--resume")
            print(f"next: {shlex.join(words)}", file=context.stderr)
            raise
    context.stdout.write(f"session {session}: `slotscope experiment show {session}` shows what it found\n")
    return 0


def _watch(arguments: argparse.Namespace, context: CliContext) -> int:
    from profiler.cli.experiment_remote import follow

    options = server_options(arguments)
    assert options is not None
    with signals_as_interrupts():
        return follow(arguments.session, options, context)


def _cancel(arguments: argparse.Namespace, context: CliContext) -> int:
    from profiler.cli.experiment_remote import cancel

    options = server_options(arguments)
    assert options is not None
    return cancel(arguments.session, options, context)


def _show(arguments: argparse.Namespace, context: CliContext) -> int:
    remote = server_options(arguments)
    if remote is not None:
        from profiler.cli.experiment_remote import show

        _check_remote_show(arguments)
        return show(arguments.session, arguments.format, remote, context)
    from profiler.cli.experiment_rendering import render_evaluation
    from profiler.experiment.evaluate import find_experiment

    store = _store(context)
    experiment = find_experiment(store, arguments.session)
    evaluation = _evaluator(arguments, context, store, experiment).evaluate(experiment)
    if arguments.plots is not None:
        from profiler.cli.experiment_rendering import write_plots

        for path in write_plots(evaluation, arguments.plots):
            print(f"wrote {path}", file=context.stderr)
    options = reading_options(arguments)
    comparisons = [condition.comparison for condition in evaluation.result.conditions]
    checked = check_conditions(comparisons, arguments.fail_on or [], experiment.record.better_higher)
    context.stdout.write(render_evaluation(evaluation, options, arguments.redact, terminal_style(context)))
    context.stdout.flush()
    return checked.tell(context.stderr)


def _check_remote_show(arguments: argparse.Namespace) -> None:
    """``UsageError`` for what an aggregator is not asked: nothing is passed over in silence."""
    reading = reading_options(arguments)
    given = {
        "--rules": arguments.rules,
        "--phase": reading.phase is not None,
        "--focus": reading.focus,
        "--ignore": reading.ignore,
        "--event": reading.event,
        "--limit": reading.limit is not None,
        "--debug-dir": reading.debug_dirs,
        "--redact": arguments.redact,
        "--plots": arguments.plots,
        "--fail-on": arguments.fail_on,
    }
    for option, value in given.items():
        if value:
            raise UsageError(f"{option} is for a store here: an aggregator shows the whole result, and its pages show more")


def _power(arguments: argparse.Namespace, context: CliContext) -> int:
    from profiler.cli.experiment_rendering import render_power
    from profiler.experiment.evaluate import find_experiment
    from profiler.experiment.experiment_power import experiment_power

    store = _store(context)
    experiment = find_experiment(store, arguments.session)
    power = experiment_power(_evaluator(arguments, context, store, experiment), experiment, experiment.record.per)
    context.stdout.write(render_power(power, reading_options(arguments), terminal_style(context)))
    return 0


def _store(context: CliContext) -> Store:
    from profiler.store.store import open_store

    return open_store(context.store_directory, create=False)


def _evaluator(arguments: argparse.Namespace, context: CliContext, store: Store, experiment: StoredExperiment) -> Evaluator:
    from profiler.cli.progress import SlowProgress
    from profiler.experiment.evaluate import Evaluator
    from symbolize.symbol_tools import symbol_tools

    options = reading_options(arguments)
    analysis = replace(options.analysis(()), phase=experiment.record.phase if options.phase is None else options.phase)
    symbolizer = symbol_tools(options.debug_dirs, context.debug_directory).symbolizer
    return Evaluator(store, analysis, experiment.record.margin, symbolizer, SlowProgress(context.stderr))
