"""`slotscope serve`: the aggregator, until it is told to end."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.cli.context import CliContext
from profiler.cli.prune import age_argument, count_argument
from profiler.cli.server_extra import check_server_extra

if TYPE_CHECKING:
    from profiler.service.aggregator import Aggregator

NAME = "serve"
HELP = "Run the aggregator for agents on other hosts"

DEFAULT_PORT = 8640
_HIGHEST_PORT = 65_535
_SHORTEST_LEAD_S, _LONGEST_LEAD_S = 1.0, 600.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument(
        "--port", type=port_argument, default=DEFAULT_PORT, metavar="N", help=f"0 = any free one (default: {DEFAULT_PORT})"
    )
    parser.add_argument("--tls-cert", type=Path, metavar="FILE", help="certificate with its chain, PEM; needed beyond loopback")
    parser.add_argument("--tls-key", type=Path, metavar="FILE", help="the certificate's key, PEM")
    parser.add_argument(
        "--behind-proxy",
        action="store_true",
        help="a proxy in front does TLS and limits addresses; trust its X-Forwarded-For",
    )
    parser.add_argument(
        "--round-lead",
        type=_seconds,
        metavar="SECONDS",
        help="of experiments: from the order of a round to its beginning; profilers attach meanwhile (default: 15)",
    )
    parser.add_argument(
        "--older-than", type=age_argument, metavar="AGE", help="once an hour, `slotscope prune` with this option"
    )
    parser.add_argument(
        "--keep-sessions", type=count_argument, metavar="N", help="and with this one (default: nothing is removed)"
    )
    parser.add_argument("--log-requests", action="store_true", help="log every request, not only what went wrong")


def port_argument(text: str) -> int:
    if not text.isdecimal() or int(text) > _HIGHEST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port (0 to {_HIGHEST_PORT})")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not _SHORTEST_LEAD_S <= seconds <= _LONGEST_LEAD_S:
        raise argparse.ArgumentTypeError(f"{text!r}: expected {_SHORTEST_LEAD_S:g} to {_LONGEST_LEAD_S:g} seconds")
    return seconds


def run(arguments: argparse.Namespace, context: CliContext) -> int:
    check_server_extra()
    from profiler.cli.termination import signals_as_interrupts
    from profiler.errors import UsageError
    from profiler.service.aggregator import open_aggregator
    from profiler.service.api.app import make_app
    from profiler.service.api.settings import ServiceSettings
    from profiler.service.experiments.settings import RoundSettings
    from profiler.service.listening.serve import Address, serve
    from profiler.service.listening.server_log import log_to
    from profiler.service.listening.serving_lock import serving_lock
    from profiler.store.prune import RetentionRule

    if (arguments.tls_cert is None) != (arguments.tls_key is None):
        raise UsageError("--tls-cert and --tls-key belong together")
    aggregator = open_aggregator(context.store_directory, create=True)
    rounds = RoundSettings() if arguments.round_lead is None else RoundSettings(lead_s=arguments.round_lead)
    retention = RetentionRule(arguments.older_than, arguments.keep_sessions)
    settings = ServiceSettings(is_behind_proxy=arguments.behind_proxy, rounds=rounds, retention=retention)
    address = Address(arguments.host, arguments.port, arguments.tls_cert, arguments.tls_key)

    def ready(url: str) -> None:
        held.enter_context(serving_lock(context.store_directory))
        log_to(context.stderr, arguments.log_requests)
        context.stdout.write(f"serving {context.store_directory} at {url}\n{_advice(aggregator)}")
        context.stdout.flush()

    with signals_as_interrupts(), ExitStack() as held:
        serve(make_app(aggregator, settings), address, settings, ready)
    return 0


def _advice(aggregator: Aggregator) -> str:
    if any(not token.revoked_ns for token in aggregator.tokens.tokens()):
        return ""
    return "no token yet, so nobody is let in: `slotscope token create NAME --scope agent|reader|operator` makes one\n"
