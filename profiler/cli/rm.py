"""`slotscope rm`: removes a session, or one variant of it."""

from __future__ import annotations

import argparse

from profiler.cli.context import CliContext

NAME = "rm"
HELP = "Remove a session, or one variant of it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("selectors", nargs="+", metavar="SELECTOR", help="last, SESSION, SESSION/NAME or NAME")


def run(arguments: argparse.Namespace, context: CliContext) -> int:
    from profiler.store.selectors import resolve_session
    from profiler.store.store import open_store
    from reports.quantities import counted

    store = open_store(context.store_directory, create=False)
    targets = dict.fromkeys(resolve_session(selector, store) for selector in arguments.selectors)
    for target in targets:
        session = target.session.name
        runs = store.runs(session, target.variant)
        if target.variant:
            store.remove(runs)
        else:
            store.remove_session(session)
        name = f"{session}/{target.variant}" if target.variant else session
        context.stdout.write(f"removed {name}: {counted(len(runs), 'run')}\n")
    return 0
