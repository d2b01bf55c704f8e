"""A rule set as text: every rule in the order in which it is tried, or what a check of it found."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.model.category import Rule, RuleSet
from profiler.model.rule_finding import RuleFinding, RuleUse
from reports.plain_text import printable
from reports.quantities import counted, percent
from reports.terminal_table import TerminalStyle, wrap


def render_rule_set(rule_set: RuleSet, style: TerminalStyle) -> str:
    """One paragraph per rule: where it stands, what it says, what must match; ends with a newline."""
    lines = [rule_summary(rule_set), ""]
    lines += [wrap(_rule_line(rule), style) for rule in rule_set.rules]
    return "\n".join(lines) + "\n"


def render_check(rule_set: RuleSet, findings: Sequence[RuleFinding], use: RuleUse | None, style: TerminalStyle) -> str:
    """The summary, mistakes, what else is worth knowing, and with ``use`` the functions that no rule named."""
    mistakes = [finding for finding in findings if finding.is_mistake]
    notes = [finding for finding in findings if not finding.is_mistake]
    verdict = counted(len(mistakes), "mistake") if mistakes else "no mistakes found"
    lines = [wrap(f"{rule_summary(rule_set)}: {verdict}", style)]
    lines += [wrap(f"{finding.origin}: {finding.kind}: {finding.message}", style) for finding in mistakes]
    if notes:
        lines += ["", "worth knowing"]
        lines += [wrap(f"{finding.origin}: {finding.kind}: {finding.message}", style, "  ") for finding in notes]
    if use is not None:
        lines += ["", *_names_nobody_took(use, style)]
    return "\n".join(lines) + "\n"


def _names_nobody_took(use: RuleUse, style: TerminalStyle) -> list[str]:
    if not use.others:
        return [f"{printable(use.arm)}: every sample is in a category"]
    lines = [wrap(f"{use.arm}: functions that no rule names, with a line that would take each", style)]
    for entry in use.others:
        share = percent(entry.weight / use.total) if use.total else ""
        lines.append(wrap(f"{share}  {entry.name}  {entry.suggested_rule}", style, "  "))
    return lines


def rule_summary(rule_set: RuleSet) -> str:
    """ "ethereum+native: 140 rules, 31 categories, 12 transparent rules"."""
    categories = {rule.category for rule in rule_set.rules if not rule.is_transparent}
    transparent = sum(rule.is_transparent for rule in rule_set.rules)
    parts = (counted(len(rule_set.rules), "rule"), _categories(len(categories)), counted(transparent, "transparent rule"))
    return f"{printable(rule_set.name)}: {', '.join(parts)}"


def _categories(number: int) -> str:
    return f"{number} {'category' if number == 1 else 'categories'}"


def _rule_line(rule: Rule) -> str:
    marks = [
        *((f"group {rule.group}",) if rule.group else ()),
        *(("pass-through",) if rule.is_passthrough else ()),
        *(("fallback",) if rule.is_fallback else ()),
    ]
    title = "(transparent)" if rule.is_transparent else rule.category
    patterns = {"function": rule.function, "file": rule.file, "dso": rule.dso, "under": rule.under}
    conditions = "  ".join(f"{key} ~ {pattern.text}" for key, pattern in patterns.items() if pattern is not None)
    shown_marks = f" [{', '.join(marks)}]" if marks else ""
    return f"{rule.origin}  {title}{shown_marks}  {conditions}"
