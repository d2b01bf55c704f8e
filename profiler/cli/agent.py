"""`slotscope agent`: carries out what an aggregator orders, as far as this host's own file allows it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.cli.context import CliContext, terminal_style

if TYPE_CHECKING:
    from collectors.agent.config.agent_config import AgentConfig, ConfiguredTarget
    from profiler.model.fitness import FitnessCheck

NAME = "agent"
HELP = "Do on this host what an aggregator orders and a file allows"
EXIT_UNFIT = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", metavar="FILE", required=True, help="server, token, limits, targets and workloads (TOML)")
    parser.add_argument("--check", action="store_true", help="say what it would offer and whether this host is fit, and end")


def run(arguments: argparse.Namespace, context: CliContext) -> int:
    from collectors.agent.config.agent_file import read_agent_file

    config = read_agent_file(Path(arguments.config))
    return _check(config, context) if arguments.check else _run(config, context)


def _run(config: AgentConfig, context: CliContext) -> int:
    from importlib.metadata import PackageNotFoundError, version

    from collectors.agent.agent_log import AgentLog
    from collectors.agent.daemon import AgentTools, run_agent
    from profiler.attach.stop_request import StopRequest

    try:
        own = version("slotscope")
    except PackageNotFoundError:
        own = "unknown"
    log = AgentLog(context.stderr, config.token)
    with StopRequest() as stop:
        log(f"slotscope agent {own} for {config.server}, spool {config.spool}")
        run_agent(config, AgentTools(log, own, lambda: _fitness(config)), stop)
    return 0


def _check(config: AgentConfig, context: CliContext) -> int:
    from reports.fitness_report import is_fit, render_fitness
    from reports.plain_text import printable

    for line in _offers(config):
        context.stdout.write(f"{printable(line)}\n")
    checks = _fitness(config)
    context.stdout.write(render_fitness(checks, terminal_style(context)))
    return 0 if is_fit(checks) else EXIT_UNFIT


def _offers(config: AgentConfig) -> list[str]:

    limits = config.limits
    lines = [
        f"server {config.server}",
        f"spool {config.spool}, {limits.spool_bytes >> 20} MiB at most",
        f"limits: {limits.longest_job_s:g} s of a job, {limits.highest_frequency_hz} Hz, {limits.cpu_percent:g} % of a CPU",
    ]
    for target in config.targets:
        variants = f", becomes {' or '.join(target.variants)}" if target.variants else ""
        lines.append(
            f"target {target.name}: {target.finder}{', with metrics' if target.metrics else ''}{_how(target)}{variants}"
        )
    for workload in config.workloads:
        names = ", ".join(f"{variant.name} = {variant.binary}" for variant in workload.variants)
        lines.append(f"workload {workload.name}: {' '.join(workload.command)} ({names})")
    return lines if config.targets or config.workloads else [*lines, "nothing is offered: no [[target]] and no [[workload]]"]


def _how(target: ConfiguredTarget) -> str:
    """What records it, where that is not perf."""
    from collectors.profilers.pyspy import pyspy_version
    from profiler.errors import CaptureError
    from profiler.protocol.hello import TargetProfiler

    if target.profiler is TargetProfiler.PERF:
        return ""
    try:
        frames = "Python and native frames" if target.has_native else "Python frames"
        return f", {frames} by py-spy {pyspy_version()}"
    except CaptureError as error:
        return f", by py-spy, which is missing: {error}"


def _fitness(config: AgentConfig) -> tuple[FitnessCheck, ...]:
    from collectors.host_fitness import host_fitness
    from profiler.analysis.quality.host_checks import host_checks
    from symbolize.debuginfod import configured_servers
    from symbolize.kernel_cache import read_kallsyms

    return host_checks(host_fitness(config.spool, read_kallsyms() is not None, configured_servers()))
