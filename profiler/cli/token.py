"""`slotscope token`: who may talk to the aggregator."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from profiler.cli.context import CliContext, terminal_style
from profiler.errors import UsageError

if TYPE_CHECKING:
    from profiler.service.access.token_registry import Token, TokenRegistry

NAME = "token"
HELP = "Make, revoke and list the tokens of the aggregator"

SCOPES = ("agent", "reader", "operator")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="create|revoke|list", help="one of these")
    create = actions.add_parser("create", help="make a token", description="Make a token; its secret is shown this once.")
    create.add_argument("name", metavar="NAME", help="of the agent or person: letters, digits and _ . -")
    create.add_argument(
        "--scope", choices=SCOPES, required=True, help="agent: one host; reader: sees everything; operator: also orders jobs"
    )
    revoke = actions.add_parser("revoke", help="make a token worthless", description="Make a token worthless, at once.")
    revoke.add_argument("name", metavar="NAME", help="as `token list` shows it")
    actions.add_parser("list", help="all tokens", description="All tokens, without their secrets.")


def run(arguments: argparse.Namespace, context: CliContext) -> int:
    from profiler.service.aggregator import open_aggregator

    tokens = open_aggregator(context.store_directory, create=arguments.action == "create").tokens
    if arguments.action == "create":
        _create(arguments.name, arguments.scope, tokens, context)
    elif arguments.action == "revoke":
        _revoke(arguments.name, tokens, context)
    else:
        _list(tokens, context)
    return 0


def _create(name: str, scope: str, tokens: TokenRegistry, context: CliContext) -> None:
    """Only the secret goes to standard output, so that it can be written to a file."""
    from profiler.service.access.token_registry import Scope, Token, digest_of, is_token_name, new_secret

    if not is_token_name(name):
        raise UsageError(f"token name {name!r}: use letters, digits and _ . - (at most 64, first a letter or digit)")
    secret = new_secret()
    if not tokens.add(Token(name, Scope(scope), time.time_ns()), digest_of(secret)):
        raise UsageError(f"there is a token {name!r} already: `slotscope token revoke {name}` first, or take another name")
    context.stdout.write(f"{secret}\n")
    context.stderr.write(f"token of {scope} {name}: shown this once, keep it in a file that only its user can read\n")


def _revoke(name: str, tokens: TokenRegistry, context: CliContext) -> None:
    if not tokens.revoke(name, time.time_ns()):
        raise UsageError(f"no valid token {name!r} (see `slotscope token list`)")
    context.stdout.write(f"revoked {name}\n")


def _list(tokens: TokenRegistry, context: CliContext) -> None:
    from reports.terminal_table import Column, render_table

    known = tokens.tokens()
    if not known:
        context.stdout.write("no tokens\n")
        return
    columns = [
        Column("name", tuple(token.name for token in known), is_word=True),
        Column("scope", tuple(str(token.scope) for token in known), is_word=True),
        Column("created", tuple(_moment(token.created_ns) for token in known), is_word=True),
        Column("last used", tuple(_moment(token.used_ns) if token.used_ns else "never" for token in known), is_word=True),
        Column("state", tuple(_state(token) for token in known), is_text=True),
    ]
    context.stdout.write(render_table(columns, terminal_style(context)))


def _state(token: Token) -> str:
    return f"revoked {_moment(token.revoked_ns)}" if token.revoked_ns else "valid"


def _moment(time_ns: int) -> str:
    """UTC, to the minute."""
    return time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime(time_ns // 1_000_000_000))
