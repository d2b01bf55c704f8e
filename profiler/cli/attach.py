"""`slotscope attach`: profiles a process that runs already, window after window."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import signal
from typing import TYPE_CHECKING, TextIO

from profiler.cli.context import CliContext, default_store_directory
from profiler.cli.options import GivenOnce, regex_argument
from profiler.cli.profiling_options import add_profiling_options
from profiler.cli.termination import Terminated
from profiler.errors import UsageError
from profiler.model import sampling_defaults
from profiler.model.quick_dataclass import dataclass

if TYPE_CHECKING:
    from collectors.prometheus import PageMetric
    from collectors.targets.target_finder import TargetFinder
    from profiler.attach.plan import AttachPlan
    from profiler.model.attach_summary import AttachSummary, KeptWindow

NAME = "attach"
HELP = "Profile a process that runs already, window after window"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    target = parser.add_argument_group("what is profiled: one of these, with all its threads and what it starts")
    choice = target.add_mutually_exclusive_group(required=True)
    choice.add_argument("--pid", action=GivenOnce, type=int, metavar="P", help="a process")
    choice.add_argument(
        "--comm", action=GivenOnce, type=regex_argument, metavar="RE", help="the process whose whole name matches"
    )
    choice.add_argument(
        "--cgroup", action=GivenOnce, metavar="G", help="all processes of a cgroup, by its path below /sys/fs/cgroup"
    )
    choice.add_argument("--unit", action=GivenOnce, metavar="U", help="all processes of a systemd unit")
    choice.add_argument("--container", action=GivenOnce, metavar="C", help="all processes of a container, by name or ID")
    target.add_argument(
        "--exclude",
        action="append",
        metavar="PID|RE",
        help="with --comm: not the process with this ID, or whose command line matches; may be repeated",
    )
    _add_windows(parser)
    add_profiling_options(parser, "that it has mapped", sampling_defaults.ATTACHED_FREQUENCY_HZ)
    _add_python(parser)


def _add_windows(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how long, and under which name")
    group.add_argument("--duration", type=float, metavar="S", help="seconds (default: until Ctrl-C or its end)")
    group.add_argument(
        "--window",
        type=float,
        metavar="S",
        help=f"seconds of one window (default: {sampling_defaults.WINDOW_S:g}, or what fits --duration)",
    )
    group.add_argument("--variant", default="", metavar="NAME", help="name of the arm (default: the name of the process)")
    group.add_argument("--metrics", default="", metavar="URL", help="page of Prometheus metrics of the process")
    group.add_argument(
        "--metric",
        action="append",
        metavar="NAME=SERIES",
        help='mean of a histogram or summary on that page over each window, such as proof=proof_seconds{path="/"}; may be '
        "repeated",
    )


def _add_python(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("Python processes")
    group.add_argument("--python", action="store_true", help="py-spy records Python frames, in moments that are not idle")
    group.add_argument("--native", action="store_true", help="with --python: frames of C, C++ and Rust, too")


def _check_python(arguments: argparse.Namespace) -> None:
    """``UsageError`` for options that mean nothing together."""
    if not arguments.python:
        if arguments.native:
            raise UsageError("--native is for --python: perf always records native frames")
        return
    refused = (
        ("--call-graph", arguments.call_graph != "auto", "py-spy reads the stacks from the interpreter (--native adds others)"),
        ("--event", arguments.event != "auto", "py-spy counts moments of wall time in which a thread is not idle"),
        ("--metrics", bool(arguments.metrics or arguments.metric), "pages of metrics are read beside perf only"),
    )
    for option, is_given, reason in refused:
        if is_given:
            raise UsageError(f"{option} does not go with --python: {reason}")
    if arguments.pid is None and not arguments.comm:
        raise UsageError("--python records one process and what it starts: name it by --pid or --comm")


def run(arguments: argparse.Namespace, context: CliContext) -> int:
    from profiler.attach.session import attach_session, python_session
    from profiler.attach.stop_request import StopRequest
    from profiler.store.store import open_store
    from reports.attach_lines import summary_lines

    plan = attach_plan(arguments)
    _check_python(arguments)
    with StopRequest() as stop:
        store = open_store(context.store_directory, create=True)
        if arguments.python:
            summary = python_session(plan, arguments.native, store, stop, _Terminal(context.stderr))
        else:
            summary = attach_session(plan, store, stop, _Terminal(context.stderr))
    lines = [*summary_lines(summary), _next_command(summary, context, plan)]
    context.stdout.write("".join(f"{line}\n" for line in lines))
    if stop.number and plan.duration_s:
        raise KeyboardInterrupt if stop.number == signal.SIGINT else Terminated(stop.number)
    return 0


@dataclass(frozen=True, slots=True)
class _Terminal:
    """An ``AttachObserver`` that shows a person all lines; they tell of everything else, too."""

    stream: TextIO

    def told(self, line: str) -> None:
        from reports.plain_text import printable

        self.stream.write(f"{printable(line)}\n")
        self.stream.flush()

    def attached(self, session: str) -> None: ...

    def begun(self, begun_ns: int) -> None: ...

    def window_kept(self, window: KeptWindow) -> None: ...

    def ended(self, summary: AttachSummary) -> None: ...


def attach_plan(arguments: argparse.Namespace) -> AttachPlan:
    """The plan of a parsed command line.  ``UsageError`` for values that cannot work."""
    from profiler.attach.plan import AttachPlan, duration_length_s, window_length_s
    from profiler.experiment.plan.call_graph_request import parse_call_graph
    from profiler.experiment.plan.recording_plan import DEFAULT_EVENT

    finder = _finder(arguments)
    duration_s = duration_length_s(arguments.duration)
    return AttachPlan(
        finder=finder,
        variant=arguments.variant,
        duration_s=duration_s,
        window_s=window_length_s(duration_s, arguments.window),
        event=DEFAULT_EVENT if arguments.event == "auto" else arguments.event,
        frequency_hz=arguments.frequency,
        call_graph=parse_call_graph(arguments.call_graph),
        phase=arguments.phase,
        metrics_address=arguments.metrics,
        pages=tuple(_page_metric(option) for option in arguments.metric or ()),
        command=("attach", *_target_words(finder), *(("--python",) if arguments.python else ())),
    )


def _finder(arguments: argparse.Namespace) -> TargetFinder:
    from collectors.targets.target_finder import TargetFinder

    if arguments.exclude and not arguments.comm:
        raise UsageError("--exclude is for --comm: the others name what they mean")
    if arguments.pid is not None and arguments.pid < 1:
        raise UsageError(f"--pid {arguments.pid}: expected the number of a process")
    for text in arguments.exclude or ():
        try:
            re.compile(text)
        except re.error as error:
            raise UsageError(f"--exclude {text!r}: {error}") from None
    return TargetFinder(
        pid=arguments.pid or 0,
        comm=arguments.comm or "",
        cgroup=arguments.cgroup or "",
        unit=arguments.unit or "",
        container=arguments.container or "",
        exclude=tuple(arguments.exclude or ()),
    )


def _target_words(finder: TargetFinder) -> tuple[str, ...]:
    given = (
        ("--pid", str(finder.pid) if finder.pid else ""),
        ("--comm", finder.comm),
        ("--cgroup", finder.cgroup),
        ("--unit", finder.unit),
        ("--container", finder.container),
    )
    return tuple(word for option, value in given if value for word in (option, value))


def _page_metric(option: str) -> PageMetric:
    from collectors.prometheus import parse_series

    name, equals, series = option.partition("=")
    if not equals or not name or not series:
        raise UsageError(f"--metric {option!r}: expected NAME=SERIES, such as proof=proof_seconds")
    return parse_series(name, series.removeprefix("prom:"))


def _next_command(summary: AttachSummary, context: CliContext, plan: AttachPlan) -> str:
    program = "slotscope"
    if context.store_directory != default_store_directory(os.environ):
        program += f" --store {shlex.quote(str(context.store_directory))}"
    if not summary.totals.has_samples:
        return f"next: {program} show {summary.session}"
    phase = f" --phase {shlex.quote(plan.phase)}" if plan.phase else ""
    files = f" --debug-dir {summary.files}" if summary.files else ""
    return f"next: {program} report {summary.session}/{summary.variant}{phase}{files}"
