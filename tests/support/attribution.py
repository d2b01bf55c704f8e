"""Short ways from a drawn profile to attributed runs."""

from __future__ import annotations

import numpy as np

from profiler.analysis.attribution.attribute import Attribution, attribute
from profiler.analysis.attribution.attributed_run import AttributedRun, attributed_run
from profiler.analysis.attribution.logical_stacks import expand
from profiler.model.category import RuleSet
from profiler.model.symbols import SymbolizedCapture
from profiler.rules.loader import parse_rule_file
from profiler.rules.matcher import RuleMatcher


def rules(text: str) -> RuleSet:
    return RuleSet("test", parse_rule_file(text, "test.toml").rules)


def attributed(symbolized: SymbolizedCapture, rule_set: RuleSet, keep_lines: bool = True) -> AttributedRun:
    """The run with all samples admitted."""
    stacks = expand(symbolized, keep_lines)
    dso_names = [dso.name for dso in symbolized.capture.dsos]
    matches = RuleMatcher(rule_set).match(symbolized.functions, symbolized.files, dso_names, stacks.places)
    admitted = np.ones(len(symbolized.capture.samples), np.bool_)
    return attributed_run(symbolized, stacks, matches, attribute(stacks, matches, rule_set), admitted)


def categories_of_samples(run: AttributedRun, view: str = "leaf") -> list[str]:
    """The category of each sample, in the order of the sample table."""
    found: Attribution = run.attribution
    column = found.owner_category if view == "owner" else found.leaf_category
    names = run.category_names()
    rows = run.stacks.innermost[run.symbolized.capture.samples.stack]
    return [names[number] for number in column[rows].tolist()]
