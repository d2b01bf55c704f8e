"""`slotscope rules`: what the category rules say, and whether a rule file is right."""

from __future__ import annotations

import argparse

from profiler.cli.context import CliContext, terminal_style
from profiler.model.analysis_choices import DEFAULT_RULE_SETS

NAME = "rules"
HELP = "Show the category rules, or check a rule file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("show", "check"), help="show: list rules in the order tried; check: find mistakes")
    parser.add_argument(
        "names", nargs="*", metavar="NAME|FILE", help="rule sets or files (show: default ethereum and native; check: needed)"
    )


def run(arguments: argparse.Namespace, context: CliContext) -> int:
    from profiler.errors import UsageError
    from profiler.rules.loader import load_rule_sets
    from reports.terminal_rules import render_rule_set, rule_summary

    if arguments.action == "check" and not arguments.names:
        raise UsageError("rules check: name the rule file to check")
    rule_set = load_rule_sets(tuple(arguments.names) or DEFAULT_RULE_SETS)
    if arguments.action == "check":
        context.stdout.write(f"{rule_summary(rule_set)}: no mistakes found\n")
    else:
        context.stdout.write(render_rule_set(rule_set, terminal_style(context)))
    return 0
