"""The options of `slotscope record`, and the plan that they make."""

from __future__ import annotations

import argparse
import re
import secrets
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.cli.profiling_options import add_profiling_options
from profiler.errors import UsageError
from profiler.model.sampling_defaults import FREQUENCY_HZ

if TYPE_CHECKING:
    from profiler.experiment.plan.recording_plan import ProfilePolicy, RecordPlan

_PROFILE = ("separate", "same", "none")
_PICKS = ("mean", "median", "last", "sum")
_RUNS_OF_SEVERAL = 10


def add_record_options(parser: argparse.ArgumentParser) -> None:
    _add_arms(parser)
    group = add_profiling_options(parser, "of its shared objects", FREQUENCY_HZ)
    group.add_argument("--keep-raw", action="store_true", help="keep perf's recordings beside the captures")
    _add_surroundings(parser)
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- CMD ...", help="the program and its arguments")


def _add_arms(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what is run, and how often")
    group.add_argument(
        "--variant",
        action="append",
        metavar="NAME[=BINARY]",
        help="an arm; BINARY replaces {binary} in CMD; may be repeated, arms are interleaved (default: the program's name)",
    )
    group.add_argument("--runs", type=int, metavar="N", help="rounds (default: 10, for a single arm 1)")
    group.add_argument("--warmup", type=int, default=0, metavar="N", help="runs per arm before the first round, not kept")
    group.add_argument("--seed", type=int, metavar="N", help="of the order of the runs, to repeat one (default: random)")
    group.add_argument(
        "--profile",
        choices=_PROFILE,
        help="separate: every arm once plain and once under perf per round; same: only under perf; none: only plain "
        "(default: separate, for a single run same)",
    )
    group.add_argument(
        "--metric",
        action="append",
        metavar="NAME=SPEC",
        help="a number from the program's output: SPEC is a regular expression with one group around the number, its unit "
        "included ('took ([\\d.]+ ms)'), or json:PATH; may be repeated",
    )
    group.add_argument("--pick", choices=_PICKS, default=_PICKS[0], help="of several matches of a metric (default: mean)")


def _add_surroundings(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("around each run")
    group.add_argument("--before", default="", metavar="CMD", help="command to run before every run (no shell)")
    group.add_argument("--drop-caches", action="store_true", help="empty the page cache before every run (root)")
    group.add_argument("--input", action="append", metavar="FILE", help="note size and SHA-256 of an input; may be repeated")
    group.add_argument("--cpus", default="", metavar="LIST", help="CPUs that the program may use, such as 0-3,8")


def record_plan(arguments: argparse.Namespace) -> RecordPlan:
    """The plan of a parsed command line.  ``UsageError`` for values that cannot work."""
    from collectors.metrics import parse_metric
    from profiler.experiment.plan.call_graph_request import parse_call_graph
    from profiler.experiment.plan.cpu_list import parse_cpus
    from profiler.experiment.plan.recording_plan import DEFAULT_EVENT, RecordPlan, variant_arms

    command = tuple(arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command)
    if not command:
        raise UsageError("no command to record: `slotscope record [OPTIONS] -- CMD ARGUMENTS...`")
    variants = _variants(arguments.variant or (), command)
    runs = arguments.runs if arguments.runs is not None else (_RUNS_OF_SEVERAL if len(variants) > 1 else 1)
    return RecordPlan(
        command=command,
        arms=variant_arms(command, variants),
        seed=_seed(arguments.seed),
        runs=runs,
        warmup=arguments.warmup,
        profile=_profile(arguments.profile, is_single_run=len(variants) == 1 and runs == 1),
        event=DEFAULT_EVENT if arguments.event == "auto" else arguments.event,
        frequency_hz=arguments.frequency,
        call_graph=parse_call_graph(arguments.call_graph),
        metrics=tuple(parse_metric(option, arguments.pick) for option in arguments.metric or ()),
        before=_split(arguments.before),
        drop_caches=arguments.drop_caches,
        inputs=tuple(Path(path) for path in arguments.input or ()),
        cpus=parse_cpus(arguments.cpus),
        phase=arguments.phase,
        keep_raw=arguments.keep_raw,
    )


def _variants(options: Sequence[str], command: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """(name, binary) of each arm."""
    if not options:
        name = re.sub(r"[^A-Za-z0-9_.+@,-]", "_", Path(command[0]).name).lstrip(".+@,-")
        return ((name if name and name != "last" else f"{name or 'program'}_", ""),)
    return tuple((name, binary) for name, _, binary in (option.partition("=") for option in options))


def _profile(given: str | None, is_single_run: bool) -> ProfilePolicy:
    from profiler.experiment.plan.recording_plan import ProfilePolicy

    return ProfilePolicy(given or ("same" if is_single_run else "separate"))


def _seed(given: int | None) -> int:
    if given is None:
        return secrets.randbelow(1 << 32)
    if not 0 <= given < 1 << 63:
        raise UsageError(f"--seed {given}: expected a number from 0 to 2^63 - 1")
    return given


def _split(command: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(command))
    except ValueError as error:
        raise UsageError(f"--before {command!r}: {error}") from None
