"""Mistakes in rules, and what is worth knowing about them.

Three questions are answered by proof or example from the patterns alone: which rules are behind others that take all of
theirs, which patterns no name can have, and which can take exponential time.  The fourth is answered by trial over names:
which of them two rules of different categories match.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from profiler.model.category import Rule, RuleSet
from profiler.model.rule_finding import FindingKind, NamedPlace, RuleFinding, RuleUse
from profiler.model.rule_pattern import RulePattern
from profiler.rules.check.regex_examples import NoExamples, example_texts
from profiler.rules.check.rule_order import PatternProofs, parts_of, unreachable_rules
from profiler.rules.check.rule_trial import matches_place, overlapping_rules
from profiler.rules.regex_tree import parse_regex

KeyOfName = Callable[[str], tuple[str, str]]
_CLOSING = {"(": ")", "[": "]", "<": ">", "{": "}"}
_FUNCTION_KEYS = ("function", "under")


def check_rules(
    rule_set: RuleSet, files: Sequence[str], key_of_name: KeyOfName, places: Sequence[NamedPlace]
) -> tuple[RuleFinding, ...]:
    """All findings about the rules that stand in ``files`` (as in ``Rule.origin``), mistakes first, each kind in file order.

    ``key_of_name``: canonical name and trait key ("" = none) of a function's name.  ``places``: what overlaps are tried on.
    """
    rules = [rule for rule in rule_set.rules if file_of(rule) in files]
    found = [finding for rule in rules for finding in _never_matching(rule, key_of_name)]
    hopeless = {finding.origin for finding in found}
    found += [finding for finding in unreachable_rules(rule_set, files, PatternProofs()) if finding.origin not in hopeless]
    found += overlapping_rules(rule_set, files, places)
    kinds, origins = list(FindingKind), [rule.origin for rule in rules]
    return tuple(
        sorted(found, key=lambda finding: (not finding.is_mistake, kinds.index(finding.kind), origins.index(finding.origin)))
    )


def unused_rules(rule_set: RuleSet, files: Sequence[str], use: RuleUse) -> tuple[RuleFinding, ...]:
    """The rules of ``files`` that took no frame of an arm, and why, in file order."""
    found = []
    for rule in rule_set.rules:
        if file_of(rule) not in files or rule.origin in use.taken:
            continue
        if not any(matches_place(rule, place) for place in use.places):
            message = f"matches nothing in {use.arm}"
        elif rule.under is not None:
            message = f"takes nothing in {use.arm}: 'under' does not hold there, or a rule before it takes the frames"
        else:
            message = f"takes nothing in {use.arm}: a rule before it takes the frames"
        found.append(RuleFinding(rule.origin, FindingKind.UNUSED, message))
    return tuple(found)


def file_of(rule: Rule) -> str:
    """The file that the rule stands in, as ``Rule.origin`` has it."""
    return rule.origin.rpartition(":")[0]


def _never_matching(rule: Rule, key_of_name: KeyOfName) -> list[RuleFinding]:
    found = []
    for key in _FUNCTION_KEYS:
        pattern = getattr(rule, key)
        for part in parts_of(pattern) if pattern is not None else ():
            if message := _no_function(part, key_of_name, searches_traits=not rule.is_transparent or key == "under"):
                found.append(RuleFinding(rule.origin, FindingKind.NEVER_MATCHES, f"{key} '{part}': {message}"))
    for part in parts_of(rule.dso) if rule.dso is not None else ():
        if message := _no_dso(part):
            found.append(RuleFinding(rule.origin, FindingKind.NEVER_MATCHES, f"dso '{part}': {message}"))
    return found


def _no_function(part: str, key_of_name: KeyOfName, searches_traits: bool) -> str:
    """Why the pattern is in no canonical name; "" when it may be in one."""
    try:
        examples = _examples(part)
    except NoExamples:
        return ""
    if not examples:
        return "" if _has_condition(part) else "no text has this"
    for name in examples:
        key, trait_key = key_of_name(name)
        if _search(part, key) or (searches_traits and trait_key and _search(part, trait_key)):
            return ""
    shortest = min(examples, key=len)
    return f"no canonical name has this: that of '{shortest}' is '{key_of_name(shortest)[0]}'"


def _no_dso(part: str) -> str:
    try:
        examples = [text for text in example_texts(parse_regex(part)) if _search(part, text)]
    except NoExamples:
        return ""
    if not examples:
        return "" if _has_condition(part) else "no text has this"
    if any(_search(part, name.rpartition("/")[2]) for name in examples):
        return ""
    return "a file's name has no directory"


def _search(part: str, text: str) -> re.Match[str] | None:
    return RulePattern((part,)).search(text)


def _examples(part: str) -> list[str]:
    """Names in which the pattern is found, as tools would show them: completed where the text is a piece of one."""
    texts = example_texts(parse_regex(part))
    names = [name for text in texts for name in _completed(text) if _search(part, name)]
    return list(dict.fromkeys(names)) or [text for text in texts if text and _search(part, text)]


def _completed(text: str) -> list[str]:
    """Names with the text in them: nothing but an opening parenthesis begins a name without a word, brackets are closed."""
    closed = text + "".join(_CLOSING[bracket] for bracket in reversed(_open_brackets(text)))
    if not text or text[0].isalnum() or text[0] in "_~{(*":
        whole = [closed, f"a::{closed}"] if text else []
    else:
        whole = [f"f {closed}" if text[0] == "[" else f"f{closed}"]
    return [*whole, *(f"{name}a" for name in whole if name[-1].isalnum())]


def _open_brackets(text: str) -> list[str]:
    found: list[str] = []
    for character in text.replace("operator<<", "").replace("operator<", ""):
        if character in _CLOSING:
            found.append(character)
        elif found and character == _CLOSING[found[-1]]:
            found.pop()
    return found


def _has_condition(part: str) -> bool:
    """Whether the pattern has a condition that examples are made without."""
    return re.search(r"\(\?[=!<P(]|\\[bB1-9]|\(\?[a-z]", part) is not None
