"""`slotscope show`: what is known of one session, or of one variant of it."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from profiler.cli.context import CliContext, terminal_style
from profiler.cli.list import state_text

if TYPE_CHECKING:
    from profiler.model.run import CaptureInfo
    from profiler.store.records import StoredRun, StoredSession
    from profiler.store.store import Store

NAME = "show"
HELP = "Show what is known of a session and its runs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "selector", nargs="?", default="last", metavar="SELECTOR", help="last, SESSION, SESSION/NAME or NAME (default: last)"
    )


def run(arguments: argparse.Namespace, context: CliContext) -> int:
    from profiler.store.selectors import resolve_session
    from profiler.store.store import open_store

    store = open_store(context.store_directory, create=False)
    target = resolve_session(arguments.selector, store)
    runs = store.runs(target.session.name, target.variant)
    lines = _session_lines(target.session)
    for variant in sorted({run.summary.variant for run in runs}):
        last = [run for run in runs if run.summary.variant == variant][-1]
        lines += _variant_lines(variant, store.load(last).info)
    table = _run_table(runs, context) + _failure_lines(runs, store) if runs else "no runs\n"
    context.stdout.write("\n".join(lines) + "\n\n" + table)
    return 0


def _session_lines(session: StoredSession) -> list[str]:
    from reports.plain_text import printable

    ended = f" to {session.finished_at}" if session.finished_at else ""
    return [
        f"session {session.name}: {state_text(session)}, {session.start.started_at}{ended}",
        f"host     {printable(session.start.hostname)}",
        f"command  {printable(shlex.join(session.start.command))}",
        f"seed     {session.start.seed}",
    ]


def _variant_lines(variant: str, info: CaptureInfo) -> list[str]:
    from reports.plain_text import printable
    from reports.quantities import count

    host, program, perf = info.host, info.program, info.perf
    facts = [
        ("kernel", f"{host.kernel} {host.architecture}, {host.cpu_count} CPUs, {host.cpu}"),
        ("program", f"{program.path}, {count(program.size_bytes)} bytes, build ID {program.build_id or 'none'}"),
        ("built by", program.toolchain),
        ("built as", _build_facts(info)),
        ("recorded", shlex.join(perf.perf_command) or "not under perf"),
        ("call graph", f"{perf.call_graph} ({perf.call_graph_reason})" if perf.call_graph_reason else ""),
    ]
    facts += [("input", f"{item.path}, {count(item.size_bytes)} bytes, SHA-256 {item.sha256}") for item in info.inputs]
    return ["", f"variant {variant}", *(f"  {name:<10} {printable(text)}" for name, text in facts if text)]


def _build_facts(info: CaptureInfo) -> str:
    program = info.program
    parts = [
        f"debug information: {program.debug_info}" if program.debug_info else "",
        f"mangling: {program.mangling}" if program.mangling else "",
        f"allocator: {program.allocator}" if program.allocator else "",
    ]
    if program.frame_pointers is not None:
        parts.append(f"frame pointers: {'kept' if program.frame_pointers else 'not kept'}")
    return ", ".join(part for part in parts if part)


def _run_table(runs: Sequence[StoredRun], context: CliContext) -> str:
    from reports.quantities import count, scale_for
    from reports.terminal_table import Column, render_table

    summaries = [run.summary for run in runs]
    wall = scale_for([summary.wall_ns for summary in summaries], "ns")
    cpu = scale_for([summary.user_ns + summary.system_ns for summary in summaries], "ns")
    columns = [
        Column("run", tuple(str(run.key.number) for run in runs)),
        Column("round", tuple(str(summary.round) for summary in summaries), keep=5),
        Column("variant", tuple(summary.variant for summary in summaries), is_text=True),
        Column("mode", tuple(str(summary.mode) for summary in summaries), is_word=True),
        Column("wall", tuple(wall.quantity(summary.wall_ns) for summary in summaries), keep=9),
        Column("cpu", tuple(cpu.quantity(summary.user_ns + summary.system_ns) for summary in summaries), keep=8),
        Column("samples", tuple(count(summary.samples) if summary.samples else "" for summary in summaries), keep=7),
        Column("lost", tuple(count(summary.lost_samples) if summary.lost_samples else "" for summary in summaries), keep=6),
        Column("remark", tuple(_remark(run) for run in runs), is_word=True, keep=10),
    ]
    return render_table(columns, terminal_style(context))


def _remark(run: StoredRun) -> str:
    if run.summary.failure:
        return "left out"
    return "" if run.round_complete else "its round was cut short"


def _failure_lines(runs: Sequence[StoredRun], store: Store) -> str:
    from collectors.processes.process_output import with_last_line
    from reports.plain_text import printable

    lines = []
    for run in runs:
        if run.summary.failure:
            output = store.load(run).info.outcome.output_tail
            failure = with_last_line(run.summary.failure, output, "; its last line: ")
            lines.append(f"run {run.key.number} is left out: {printable(failure)}\n")
    return "".join(lines)
