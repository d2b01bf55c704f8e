"""`slotscope record`: runs a program, or several builds of it in turn, and keeps what was captured."""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from profiler.cli.context import CliContext, default_store_directory, terminal_style
from profiler.cli.record_options import add_record_options, record_plan
from profiler.cli.termination import signals_as_interrupts

if TYPE_CHECKING:
    from profiler.experiment.run.progress import FinishedRun, SessionSummary

NAME = "record"
HELP = "Run a program, or several builds of it in turn, and keep the profiles"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_record_options(parser)


def run(arguments: argparse.Namespace, context: CliContext) -> int:
    from profiler.cli.record_progress import RecordingLines
    from profiler.experiment.run.runner import record_session
    from profiler.store.store import open_store

    plan = record_plan(arguments)
    store = open_store(context.store_directory, create=True)
    with signals_as_interrupts():
        summary = record_session(plan, store, RecordingLines(context.stderr))
    context.stdout.write(_summary_text(summary, context))
    return 0


def _summary_text(summary: SessionSummary, context: CliContext) -> str:
    from reports.quantities import counted

    failed = sum(1 for run in summary.runs if run.outcome.failure)
    head = f"session {summary.session}: {counted(summary.finished_rounds, 'round')}, {counted(len(summary.runs), 'run')}"
    head += f", {failed} of them failed and left out" if failed else ""
    head += "; medians per run" if len(summary.runs) > len(summary.preparation.arms) else ""
    table = _variant_table(summary, context)
    return "\n".join([head, table.rstrip("\n"), *_next_commands(summary, context)]) + "\n"


def _variant_table(summary: SessionSummary, context: CliContext) -> str:
    from profiler.model.run import RunMode
    from reports.quantities import count
    from reports.terminal_table import Column, render_table

    names = [arm.name for arm in summary.preparation.arms]
    valid = {name: [run for run in summary.runs if run.variant == name and not run.outcome.failure] for name in names}
    plain = [_of_mode(valid[name], RunMode.PLAIN) for name in names]
    profiled = [_of_mode(valid[name], RunMode.PROFILED) for name in names]
    both = list(zip(plain, profiled, strict=True))
    columns = [
        Column("variant", tuple(names), is_text=True),
        Column("plain runs", tuple(str(len(runs)) if runs else "" for runs in plain), keep=2),
        Column("wall", tuple(_median_wall(runs) for runs in plain), keep=9),
        Column("cpu", tuple(_median_cpu(runs) for runs in plain), keep=8),
        Column("profiled runs", tuple(str(len(runs)) if runs else "" for runs in profiled), keep=3),
        Column("wall under perf", tuple(_median_wall(b) if not a else "" for a, b in both), keep=6),
        Column("cpu under perf", tuple(_median_cpu(runs) for runs in profiled), keep=6),
        Column("cost", tuple(_cost(a, b) for a, b in both), keep=5),
        Column("samples", tuple(count(sum(run.samples for run in runs)) if runs else "" for runs in profiled), keep=7),
        Column(
            "lost", tuple(count(lost) if (lost := sum(run.lost_samples for run in runs)) else "" for runs in profiled), keep=4
        ),
    ]
    return render_table(columns, terminal_style(context))


def _of_mode(runs: Sequence[FinishedRun], mode: str) -> list[FinishedRun]:
    return [run for run in runs if run.scheduled.mode == mode]


def _median_wall(runs: Sequence[FinishedRun]) -> str:
    return _median([run.outcome.wall_ns for run in runs])


def _median_cpu(runs: Sequence[FinishedRun]) -> str:
    return _median([_cpu_ns(run) for run in runs])


def _cpu_ns(run: FinishedRun) -> int:
    return run.outcome.user_ns + run.outcome.system_ns


def _median(values_ns: Sequence[int]) -> str:
    from reports.quantities import scale_for

    if not values_ns:
        return ""
    middle = statistics.median(values_ns)
    return scale_for([middle], "ns").quantity(middle)


def _cost(plain: Sequence[FinishedRun], profiled: Sequence[FinishedRun]) -> str:
    """What profiling added to the CPU time of the median run."""
    if not plain or not profiled:
        return ""
    without, under = (statistics.median(_cpu_ns(run) for run in runs) for runs in (plain, profiled))
    return f"{100 * (under / without - 1):+.1f} %" if without else ""


def _next_commands(summary: SessionSummary, context: CliContext) -> list[str]:
    import shlex

    names = [arm.name for arm in summary.preparation.arms]
    program = "slotscope"
    if context.store_directory != default_store_directory(os.environ):
        program += f" --store {shlex.quote(str(context.store_directory))}"
    phase = summary.preparation.plan.phase
    option = f" --phase {shlex.quote(phase)}" if phase else ""
    if not any(run.samples for run in summary.runs):
        return [f"next: {program} show {summary.session}"]
    selectors = [_selector(name) for name in names]
    lines = [f"next: {program} report {selectors[0]}{option}"]
    if len(names) > 1:
        lines.append(f"      {program} compare {' '.join(selectors)}{option}")
    return lines


def _selector(name: str) -> str:
    from profiler.store.selectors import may_be_files

    return f"variant:{name}" if may_be_files(name) else name
