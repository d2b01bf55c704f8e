"""`slotscope doctor`: is this host, a binary or a running process fit for profiling?"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.cli.context import CliContext, terminal_style

if TYPE_CHECKING:
    from profiler.model.fitness import FitnessCheck

NAME = "doctor"
HELP = "Say whether this host, a binary or a process is fit for profiling"
EXIT_UNFIT = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--binary", action="append", metavar="FILE", help="also look at this executable; may be repeated")
    parser.add_argument("--pid", type=int, metavar="PID", help="also look at this running process and its executable")
    parser.add_argument("--format", choices=("table", "json"), default="table", help="output format (default: table)")
    parser.add_argument(
        "--debug-dir", action="append", metavar="DIR", help="also search binaries and debug files here; may be repeated"
    )


def run(arguments: argparse.Namespace, context: CliContext) -> int:
    from reports.fitness_report import fitness_json, is_fit, render_fitness

    checks = _checks(arguments, context)
    text = fitness_json(checks) if arguments.format == "json" else render_fitness(checks, terminal_style(context))
    context.stdout.write(text)
    return 0 if is_fit(checks) else EXIT_UNFIT


def _checks(arguments: argparse.Namespace, context: CliContext) -> list[FitnessCheck]:
    from collectors.host_fitness import host_fitness, process_fitness
    from collectors.processes.launcher import resolve_program
    from profiler.analysis.quality.binary_checks import binary_checks, process_checks
    from profiler.analysis.quality.host_checks import host_checks
    from profiler.cli.progress import SlowProgress
    from profiler.experiment.binaries.binary_fitness import binary_fitness
    from symbolize.debuginfod import configured_servers
    from symbolize.kernel_cache import read_kallsyms
    from symbolize.symbol_tools import symbol_tools

    binaries = [resolve_program(name) for name in arguments.binary or ()]
    process = process_fitness(arguments.pid) if arguments.pid is not None else None
    with SlowProgress(context.stderr) as progress:
        progress("looking at this host")
        host = host_fitness(context.store_directory, read_kallsyms() is not None, configured_servers())
        checks = list(host_checks(host))
        if process is not None:
            checks += process_checks(process, host)
            binaries.append(_executable(process.pid))
        locator = symbol_tools(arguments.debug_dir or ()).locator
        for path in binaries:
            progress(f"looking at {path}")
            checks += binary_checks(binary_fitness(path, locator))
    return checks


def _executable(pid: int) -> Path:
    """By its own path where that is the same file here: it is not in another container, and was not replaced."""
    link = Path("/proc", str(pid), "exe")
    try:
        path = link.readlink()
        return path if path.samefile(link) else link
    except OSError:
        return link
