"""`slotscope rules`: what the category rules say, and whether a rule file is right."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from profiler.cli.context import CliContext, terminal_style
from profiler.model.analysis_choices import DEFAULT_RULE_SETS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from profiler.model.rule_finding import RuleUse

NAME = "rules"
HELP = "Show the category rules, or check a rule file"
EXIT_MISTAKES = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("show", "check"), help="show: list rules in the order tried; check: find mistakes")
    parser.add_argument(
        "names", nargs="*", metavar="NAME|FILE", help="rule sets or files (show: default ethereum and native; check: needed)"
    )
    parser.add_argument("--on", metavar="SELECTOR", help="check: also say what the rules took of these runs, and what none did")
    parser.add_argument(
        "--debug-dir", action="append", metavar="DIR", help="check --on: also search binaries and debug files here"
    )


def run(arguments: argparse.Namespace, context: CliContext) -> int:
    from profiler.errors import UsageError
    from profiler.rules.loader import load_rule_sets
    from reports.terminal_rules import render_rule_set

    if arguments.action == "check":
        if not arguments.names:
            raise UsageError("rules check: name the rule file to check")
        return _check(arguments, context)
    if arguments.on or arguments.debug_dir:
        raise UsageError("rules show: --on and --debug-dir belong to `rules check`")
    rule_set = load_rule_sets(tuple(arguments.names) or DEFAULT_RULE_SETS)
    context.stdout.write(render_rule_set(rule_set, terminal_style(context)))
    return 0


def _check(arguments: argparse.Namespace, context: CliContext) -> int:
    from profiler.rules.check.known_names import known_places
    from profiler.rules.check.rule_check import check_rules, unused_rules
    from profiler.rules.loader import load_rule_sets, origin_name
    from reports.terminal_rules import render_check
    from symbolize.function_key import function_key

    def key_of_name(name: str) -> tuple[str, str]:
        found = function_key(name)
        return found.key, found.trait_key

    rule_set = load_rule_sets(tuple(arguments.names))
    files = tuple(origin_name(name) for name in arguments.names)
    use = _rule_use(arguments.on, arguments.names, arguments.debug_dir or (), context) if arguments.on else None
    places = use.places if use is not None else known_places(key_of_name)
    findings = check_rules(rule_set, files, key_of_name, places)
    if use is not None:
        findings += unused_rules(rule_set, files, use)
    context.stdout.write(render_check(rule_set, findings, use, terminal_style(context)))
    return EXIT_MISTAKES if any(finding.is_mistake for finding in findings) else 0


def _rule_use(selector: str, names: Sequence[str], debug_dirs: Sequence[str], context: CliContext) -> RuleUse:
    from profiler.cli.load_arms import load_arms
    from profiler.cli.progress import SlowProgress
    from profiler.pipeline import AnalysisOptions, arm_rule_use
    from symbolize.symbol_tools import symbol_tools

    tools = symbol_tools(debug_dirs, context.debug_directory)
    with SlowProgress(context.stderr) as progress:
        (arm,) = load_arms([selector], context, tools.locator, progress)
        progress(f"trying the rules on {arm.name}")
        return arm_rule_use(arm, AnalysisOptions(rules=tuple(names)), tools.symbolizer)
