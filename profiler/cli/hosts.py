"""`slotscope hosts`: the agents that the aggregator knows."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from profiler.cli.aggregator_client import add_server_options, fetch_json, server_options
from profiler.cli.context import CliContext, terminal_style

if TYPE_CHECKING:
    from profiler.protocol.hello import OfferedTarget, OfferedWorkload
    from profiler.service.agents.known_hosts import Host, Hosts

NAME = "hosts"
HELP = "List the hosts whose agents the aggregator knows"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_server_options(parser)


def run(arguments: argparse.Namespace, context: CliContext) -> int:
    hosts = _hosts(arguments, context).hosts
    context.stdout.write(_table(hosts, context) if hosts else "no agent has said hello yet\n")
    return 0


def _hosts(arguments: argparse.Namespace, context: CliContext) -> Hosts:
    from profiler.service.agents.known_hosts import Hosts, known_hosts

    options = server_options(arguments)
    if options is None:
        from profiler.service.aggregator import open_aggregator

        return known_hosts(open_aggregator(context.store_directory, create=False))
    from profiler.codec.json_values import JsonShapeError, from_json
    from profiler.errors import StoreError
    from profiler.protocol.addresses import HOSTS

    try:
        return from_json(Hosts, fetch_json(options, HOSTS))
    except JsonShapeError as error:
        raise StoreError(f"{options.server}: another version of slotscope? ({error})") from None


def _table(hosts: tuple[Host, ...], context: CliContext) -> str:
    from reports.terminal_table import Column, render_table

    columns = [
        Column("host", tuple(host.name for host in hosts), is_word=True),
        Column("state", tuple(_state(host) for host in hosts), is_text=True),
        Column("targets", tuple(_names(host.hello.targets) for host in hosts), is_text=True),
        Column("workloads", tuple(_names(host.hello.workloads) for host in hosts), is_text=True),
        Column("waiting", tuple(str(host.hello.spool.waiting) for host in hosts), keep=5),
        Column("version", tuple(host.hello.version for host in hosts), is_word=True, keep=3),
        Column("kernel", tuple(host.hello.host.kernel for host in hosts), is_text=True, keep=2),
    ]
    return render_table(columns, terminal_style(context))


def _names(offers: tuple[OfferedTarget | OfferedWorkload, ...]) -> str:
    return ", ".join(offer.name for offer in offers)


def _state(host: Host) -> str:
    if host.is_silent:
        return f"silent since {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(host.heard_ns // 1_000_000_000))}"
    return host.hello.spool.problem or next((check.finding for check in host.hello.fitness if check.is_fatal), "") or "ready"
