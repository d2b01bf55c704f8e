"""Options that the reading commands share, parsed once into a typed value."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from profiler.model.analysis_choices import DEFAULT_RULE_SETS, DIMENSIONS, MARKDOWN_ROWS, TABLE_ROWS, VIEWS, PhaseScope
from profiler.model.quick_dataclass import dataclass
from profiler.rules.repetition import may_explode

if TYPE_CHECKING:
    from profiler.pipeline import AnalysisOptions, Arm

FORMATS = ("table", "markdown", "csv", "json")


class GivenOnce(argparse.Action):
    """Of an option that names one thing: a second one would be lost without a word."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: object, option_string: str | None = None
    ) -> None:
        if getattr(namespace, self.dest) is not None:
            raise argparse.ArgumentError(self, "given twice, and one only can be meant")
        setattr(namespace, self.dest, values)


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """What every reading command takes; strings are empty, ``phase`` and ``limit`` are None where nothing was given."""

    rules: tuple[str, ...]
    phase: str | None
    phase_scope: str
    focus: str
    ignore: str
    event: str
    view: str
    by: str
    format: str
    limit: int | None
    debug_dirs: tuple[str, ...]

    def analysis(self, arms: Sequence[Arm]) -> AnalysisOptions:
        """The same for the pipeline.  Where the command line names no phase, that of the recordings; ``UsageError`` when they
        disagree."""
        from profiler.pipeline import AnalysisOptions
        from profiler.stored_arms import recorded_phase

        return AnalysisOptions(
            rules=self.rules,
            phase=recorded_phase(arms) if self.phase is None else self.phase,
            phase_scope=self.phase_scope,
            focus=self.focus,
            ignore=self.ignore,
            event=self.event,
            view=self.view,
            dimensions=(self.by,),
        )

    @property
    def rows(self) -> int:
        """Rows to show, 0 = all: tables for reading are limited by default, data for programs is not."""
        if self.limit is not None:
            return self.limit
        return {"table": TABLE_ROWS, "markdown": MARKDOWN_ROWS}.get(self.format, 0)


def add_selection_options(parser: argparse.ArgumentParser) -> None:
    """--rules, --phase, --phase-scope, --focus, --ignore, --event, --debug-dir."""
    group = parser.add_argument_group("what is counted, and how")
    group.add_argument(
        "--rules", action="append", metavar="NAME|FILE", help="category rules; may be repeated (default: ethereum, native)"
    )
    group.add_argument(
        "--phase",
        type=regex_argument,
        metavar="REGEX",
        help="only time while a stack of the process matches; '' = all time (default: as asked for when it was recorded)",
    )
    group.add_argument(
        "--phase-scope",
        choices=tuple(PhaseScope),
        default=PhaseScope.PROCESS,
        help="whose samples the phase admits (default: process)",
    )
    group.add_argument("--focus", type=regex_argument, metavar="REGEX", help="only stacks with a function that matches")
    group.add_argument("--ignore", type=regex_argument, metavar="REGEX", help="no stacks with a function that matches")
    group.add_argument("--event", metavar="NAME", help="the event to count, when a recording holds several")
    group.add_argument(
        "--debug-dir", action="append", metavar="DIR", help="also search binaries and debug files here; may be repeated"
    )


def add_table_options(parser: argparse.ArgumentParser, formats: Sequence[str] = FORMATS) -> None:
    """--by, --view, --format, --limit."""
    group = parser.add_argument_group("what is shown")
    group.add_argument("--by", choices=DIMENSIONS, default="category", help="what the rows are (default: category)")
    group.add_argument(
        "--view",
        choices=VIEWS,
        default="leaf",
        help="owner charges pass-through categories such as memmove to the code that asked for them (default: leaf)",
    )
    group.add_argument("--format", choices=formats, default=formats[0], help=f"output format (default: {formats[0]})")
    group.add_argument(
        "--limit",
        type=row_count_argument,
        metavar="N",
        help=f"rows to show, 0 = all (default: {TABLE_ROWS} in tables, {MARKDOWN_ROWS} in Markdown, all in CSV and JSON)",
    )


def reading_options(arguments: argparse.Namespace) -> ReadingOptions:
    """The options of a parsed command line; those that the command does not have keep their defaults."""
    given = vars(arguments)
    return ReadingOptions(
        rules=tuple(given.get("rules") or DEFAULT_RULE_SETS),
        phase=given.get("phase"),
        phase_scope=given.get("phase_scope") or PhaseScope.PROCESS,
        focus=given.get("focus") or "",
        ignore=given.get("ignore") or "",
        event=given.get("event") or "",
        view=given.get("view") or VIEWS[0],
        by=given.get("by") or DIMENSIONS[0],
        format=given.get("format") or FORMATS[0],
        limit=given.get("limit"),
        debug_dirs=tuple(given.get("debug_dir") or ()),
    )


def regex_argument(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a regular expression: {error}") from error
    if may_explode(text):
        raise argparse.ArgumentTypeError(f"{text!r} can take exponential time: its repetition reads one text in several ways")
    return text


def row_count_argument(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of rows (0 = all)")
    return int(text)
