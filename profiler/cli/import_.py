"""`slotscope import`: files that were recorded or measured elsewhere, kept in the store as one session."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from profiler.cli.context import CliContext
from profiler.model.quick_dataclass import dataclass
from reports.quantities import counted

if TYPE_CHECKING:
    from collectors.recording_file import Locator
    from profiler.model.capture import Capture
    from profiler.store.selectors import Selection
    from profiler.store.store import Store

NAME = "import"
HELP = "Keep files that were recorded or measured elsewhere"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="perf.data, `perf script` text, folded stacks, raw text or speedscope files of py-spy, JSON of hyperfine or "
        "Google Benchmark; a directory or quoted glob is one variant, one run per file; FILE#PART one command of several; "
        "NAME=FILE under this name",
    )
    parser.add_argument("--variant", metavar="NAME", help="the variant that all of them are runs of (default: after the files)")


def run(arguments: argparse.Namespace, context: CliContext) -> int:
    from profiler.cli.progress import SlowProgress
    from profiler.store.records import check_variant_name
    from profiler.store.store import open_store
    from symbolize.symbol_tools import symbol_tools

    if arguments.variant:
        check_variant_name(arguments.variant)
    sources = [_source(selector) for selector in arguments.files]
    locator = symbol_tools(()).locator
    with SlowProgress(context.stderr) as progress:
        captures = _captures(sources, arguments.variant or "", locator, progress)
        first = next(captures)
        store = open_store(context.store_directory, create=True)
        session, variants, count = _imported(store, arguments.files, first, captures)
    shown = ", ".join(f"{session}/{name}" for name in variants)
    context.stdout.write(f"session {session}: {counted(count, 'run')} of {counted(len(variants), 'variant')}: {shown}\n")
    return 0


def _imported(store: Store, files: Sequence[str], first: Capture, others: Iterator[Capture]) -> tuple[str, list[str], int]:
    """The session's name, its variants in order, the number of runs.  What fails leaves no session behind."""
    import socket
    from datetime import UTC, datetime

    from profiler.store.records import SessionStart

    now = datetime.now(UTC).isoformat(timespec="seconds")
    start = SessionStart(now, socket.gethostname(), ("slotscope", "import", *files), 0, has_rounds=False)
    session = store.begin_session(start)
    variants: dict[str, None] = {}
    count = 0
    try:
        for count, capture in enumerate(_chain(first, others), 1):
            # Rounds of their own: what was measured elsewhere shares no blocks.
            identity = replace(capture.info.identity, session=session, round=count - 1, position=count - 1)
            store.add(replace(capture, info=replace(capture.info, identity=identity)))
            variants[identity.variant] = None
    except BaseException:
        store.remove_session(session)
        raise
    store.finish_session(session)
    return session, list(variants), count


def _chain(first: Capture, others: Iterator[Capture]) -> Iterator[Capture]:
    yield first
    yield from others


def _captures(sources: Sequence[_Source], variant: str, locator: Locator, progress: Callable[[str], None]) -> Iterator[Capture]:
    """Every run of every file, its variant named.  ``UsageError`` for runs of one variant that are not of one kind, and for a
    recording that is given twice."""
    from collectors.recording_file import read_arms, read_runs
    from profiler.cli.load_arms import CopyCheck
    from profiler.store.records import RunSummary, summarize
    from profiler.store.selectors import check_uniform

    copies: dict[str, CopyCheck] = {}
    kinds: dict[str, list[RunSummary]] = {}
    for source in sources:
        given = variant or source.name
        read = read_runs if given else read_arms
        for path in source.selection.files:
            progress(f"reading {path}")
            for capture in read(path, locator, progress, source.selection.part):
                info = capture.info
                name = given or variant_name(info.identity.variant)
                copies.setdefault(name, CopyCheck()).add(capture)
                named = replace(capture, info=replace(info, identity=replace(info.identity, variant=name)))
                kinds.setdefault(name, []).append(summarize(named))
                check_uniform(name, kinds[name])
                yield named


@dataclass(frozen=True, slots=True)
class _Source:
    """``name`` of the variant, "" = that of each file's content."""

    selection: Selection
    name: str


def _source(selector: str) -> _Source:
    """``UsageError`` when there is no such file."""
    from profiler.store.records import check_variant_name
    from profiler.store.selectors import resolve

    selection = resolve(selector, None)
    label, equals, _ = selector.partition("=")
    if equals and label == selection.label:
        check_variant_name(label)
        return _Source(selection, label)
    is_one = len(selection.files) == 1
    return _Source(selection, "" if is_one else variant_name(selection.label))


def variant_name(text: str) -> str:
    """``text`` with what cannot stand in a variant's name replaced."""
    name = re.sub(r"[^A-Za-z0-9_.+@,-]+", "_", text).lstrip(".+@,-")
    return f"{name or 'file'}_" if name in ("", "last") else name
