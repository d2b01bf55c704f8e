"""`slotscope list`: the sessions in the store, one line per variant."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from profiler.cli.context import CliContext, terminal_style

if TYPE_CHECKING:
    from profiler.store.records import StoredRun, StoredSession

NAME = "list"
HELP = "List the recorded sessions"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--limit",
        type=session_count_argument,
        default=0,
        metavar="N",
        help="only the latest N sessions, 0 = all (default: all)",
    )


def session_count_argument(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of sessions (0 = all)")
    return int(text)


def run(arguments: argparse.Namespace, context: CliContext) -> int:
    from profiler.store.store import open_store

    store = open_store(context.store_directory, create=False)
    sessions = store.sessions()
    shown = sessions[-arguments.limit :] if arguments.limit > 0 else sessions
    if not shown:
        context.stdout.write("the store is empty\n")
        return 0
    rows = [row for session in shown for row in _rows(session, store.runs(session.name))]
    context.stdout.write(_table(rows, context))
    return 0


def _rows(session: StoredSession, runs: Sequence[StoredRun]) -> list[tuple[str, ...]]:
    variants = sorted({run.summary.variant for run in runs})
    return [_row(session, variant, [run for run in runs if run.summary.variant == variant]) for variant in variants] or [
        (session.name, "(no runs)", "", "", "", state_text(session), "", "", shlex.join(session.start.command))
    ]


def _row(session: StoredSession, variant: str, runs: Sequence[StoredRun]) -> tuple[str, ...]:
    from profiler.model.run import RunMode

    valid = [run for run in runs if not run.summary.failure]
    plain = sum(run.summary.mode is RunMode.PLAIN for run in valid)
    left_out = len(runs) - len(valid)
    newest = (valid or list(runs))[-1].summary
    events = sorted({run.summary.event for run in valid if run.summary.event})
    return (
        session.name,
        variant,
        str(plain) if plain else "",
        str(len(valid) - plain) if len(valid) - plain else "",
        str(left_out) if left_out else "",
        state_text(session),
        ",".join(events),
        newest.build_id[:12],
        shlex.join(newest.command or session.start.command),
    )


def state_text(session: StoredSession) -> str:
    """How the session ended; one that never did has no word from its recorder."""
    return "unfinished" if session.state == "recording" else str(session.state)


def _table(rows: Sequence[tuple[str, ...]], context: CliContext) -> str:
    from reports.terminal_table import Column, render_table

    session, variant, plain, profiled, failed, state, event, build_id, command = zip(*rows, strict=True)
    columns = [
        Column("session", session, is_word=True),
        Column("variant", variant, is_text=True),
        Column("plain", plain, keep=8),
        Column("profiled", profiled, keep=9),
        Column("failed", failed, keep=10),
        Column("state", state, is_word=True, keep=7),
        Column("event", event, is_word=True, keep=3),
        Column("build ID", build_id, is_word=True, keep=2),
        Column("command", command, is_text=True, keep=5),
    ]
    return render_table(columns, terminal_style(context))
