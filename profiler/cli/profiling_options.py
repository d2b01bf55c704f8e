"""Options that the recording commands share."""

from __future__ import annotations

import argparse

from profiler.cli.options import regex_argument


def add_profiling_options(parser: argparse.ArgumentParser, code: str, frequency_hz: int) -> argparse._ArgumentGroup:
    """--call-graph, --frequency, --event, --phase; the group may get more.  ``code``: what has to keep frame pointers."""
    group = parser.add_argument_group("how it is profiled")
    group.add_argument(
        "--call-graph",
        default="auto",
        metavar="auto|fp|dwarf[,SIZE]|lbr|none",
        help=f"auto takes frame pointers when the program and all {code} keep them, else dwarf,16384",
    )
    group.add_argument(
        "--frequency",
        type=int,
        default=frequency_hz,
        metavar="HZ",
        help="samples per second of CPU (default: %(default)s)",
    )
    group.add_argument("--event", default="auto", metavar="E", help="perf event (default: auto = cpu-clock, in nanoseconds)")
    group.add_argument("--phase", type=regex_argument, default="", metavar="RE", help="functions of the phase that matters")
    return group
