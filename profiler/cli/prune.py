"""`slotscope prune`: removes old sessions, and what nothing needs any more."""

from __future__ import annotations

import argparse
import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from profiler.cli.context import CliContext

if TYPE_CHECKING:
    from profiler.service.ingest.retention import Leftovers
    from profiler.store.prune import RetentionRule

NAME = "prune"
HELP = "Remove old sessions, and what nothing needs any more"
_AGE = re.compile(r"([0-9]{1,6})([hdw])")
_UNIT_S = {"h": 3600.0, "d": 86_400.0, "w": 604_800.0}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        f"{HELP}. Without --older-than and --keep-sessions every session stays, and only leftovers go: files of crashes that "
        "are a day old, expired uploads of agents, and debug files that no capture needs. A session that is being recorded "
        "always stays."
    )
    parser.add_argument(
        "--older-than", type=age_argument, metavar="AGE", help="sessions that ended longer ago than this: 12h, 30d, 8w"
    )
    parser.add_argument("--keep-sessions", type=count_argument, metavar="N", help="the newest N sessions stay in any case")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be removed")


def age_argument(text: str) -> float:
    """Seconds."""
    found = _AGE.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not an age such as 12h, 30d or 8w")
    return int(found[1]) * _UNIT_S[found[2]]


def count_argument(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of sessions")
    return int(text)


def run(arguments: argparse.Namespace, context: CliContext) -> int:
    from profiler.store.prune import RetentionRule

    rule = RetentionRule(arguments.older_than, arguments.keep_sessions)
    found = _pruned(context, rule, arguments.dry_run)
    verb = "would remove" if arguments.dry_run else "removed"
    for session in found.store.sessions:
        context.stdout.write(f"{verb} {session}\n")
    for line in _leftover_lines(found):
        context.stdout.write(f"{verb} {line}\n")
    return 0


def _pruned(context: CliContext, rule: RetentionRule, is_dry: bool) -> Leftovers:
    from profiler.service.aggregator import open_aggregator
    from profiler.service.ingest.retention import Leftovers, find_all, remove_all
    from profiler.service.service_file import FILE_NAME
    from profiler.store.kept_files import unneeded_files
    from profiler.store.prune import StoreLeftovers, find_leftovers, remove_leftovers, remove_unneeded_files
    from profiler.store.store import open_store

    if (context.store_directory / FILE_NAME).exists():
        ingest = open_aggregator(context.store_directory, create=False).ingest
        return find_all(ingest, rule) if is_dry else remove_all(ingest, rule)
    store = open_store(context.store_directory, create=False)
    found = find_leftovers(store, rule, time.time())
    if is_dry:
        return Leftovers(replace(found, kept_files=unneeded_files(context.store_directory)))
    removed = remove_leftovers(store, found)
    return Leftovers(StoreLeftovers(removed, found.strays, remove_unneeded_files(store)))


def _leftover_lines(found: Leftovers) -> list[str]:
    from reports.quantities import counted

    numbers = {
        "stray file": len(found.store.strays),
        "expired upload": len(found.ingest.uploads),
        "partial file": len(found.ingest.files),
        "debug file": len(found.ingest.debug_files) + len(found.store.kept_files),
    }
    return [counted(number, what) for what, number in numbers.items() if number]
