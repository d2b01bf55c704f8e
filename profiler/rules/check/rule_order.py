"""The rules that a rule can never be reached behind: proved over patterns, not tried over names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from profiler.model.category import Rule, RuleSet
from profiler.model.rule_finding import FindingKind, RuleFinding
from profiler.model.rule_pattern import RulePattern
from profiler.rules.check.regex_automaton import SearchAutomaton, finds_all_of, search_automaton
from profiler.rules.check.regex_examples import NoExamples, example_texts
from profiler.rules.regex_tree import RegexTree, alternatives, parse_regex

_OTHER_KEYS = ("file", "dso", "under")
_EXAMPLES_TRIED = 8


@dataclass(slots=True)
class PatternProofs:
    """Trees and proofs, made once."""

    _trees: dict[str, RegexTree] = field(default_factory=dict)
    _automata: dict[tuple[str, ...], SearchAutomaton | None] = field(default_factory=dict)
    _covers: dict[tuple[str, str], bool] = field(default_factory=dict)

    def covers(self, covering: RulePattern, covered: RulePattern) -> bool:
        """Whether ``covering`` is found wherever ``covered`` is."""
        if covering.text == covered.text:
            return True
        key = covering.text, covered.text
        if key not in self._covers:
            self._covers[key] = all(self.finds_all([covering], part) for part in parts_of(covered))
        return self._covers[key]

    def finds_all(self, covering: Sequence[RulePattern], part: str) -> bool:
        """Whether one of ``covering`` is found wherever ``part`` is.  Most pairs are told apart by an example."""
        tree = self._tree(part)
        for text in islice(_examples(tree), _EXAMPLES_TRIED):
            for name in (text, f"{text}zq", f"zq{text}", f"{text}::zq"):
                if name and RulePattern((part,)).search(name) and not any(pattern.search(name) for pattern in covering):
                    return False
        return finds_all_of(self._automaton(covering), tree)

    def _automaton(self, patterns: Sequence[RulePattern]) -> SearchAutomaton | None:
        texts = tuple(pattern.text for pattern in patterns)
        if texts not in self._automata:
            trees = [self._tree(part) for pattern in patterns for part in parts_of(pattern)]
            self._automata[texts] = search_automaton(trees, unknown_holds=False)
        return self._automata[texts]

    def _tree(self, part: str) -> RegexTree:
        if part not in self._trees:
            self._trees[part] = parse_regex(part)
        return self._trees[part]


def _examples(tree: RegexTree) -> tuple[str, ...]:
    try:
        return example_texts(tree)
    except NoExamples:
        return ()


def parts_of(pattern: RulePattern) -> tuple[str, ...]:
    """The alternatives of a pattern, those inside each of its texts included."""
    return tuple(part for text in pattern.alternatives for part in alternatives(text))


def unreachable_rules(rule_set: RuleSet, files: Sequence[str], proofs: PatternProofs) -> list[RuleFinding]:
    """One finding per rule of ``files`` that rules before it cover, wholly or in alternatives of its ``function``."""
    found = []
    ordered = sorted(rule_set.rules, key=lambda rule: rule.is_fallback)
    for place, rule in enumerate(ordered):
        if rule.origin.rpartition(":")[0] not in files:
            continue
        earlier = [other for other in ordered[:place] if _may_cover(other, rule, proofs)]
        found += _findings(rule, earlier, proofs)
    return found


def _may_cover(earlier: Rule, rule: Rule, proofs: PatternProofs) -> bool:
    """Whether ``earlier`` takes every place that ``rule`` would, ``function`` left aside."""
    if earlier.function is not None and earlier.is_transparent and not rule.is_transparent:
        return False  # transparent rules do not search trait keys
    for key in _OTHER_KEYS:
        covering, covered = getattr(earlier, key), getattr(rule, key)
        if covering is not None and (covered is None or not proofs.covers(covering, covered)):
            return False
    return True


def _findings(rule: Rule, earlier: Sequence[Rule], proofs: PatternProofs) -> list[RuleFinding]:
    for other in earlier:
        if other.function is None or (rule.function is not None and proofs.covers(other.function, rule.function)):
            return [RuleFinding(rule.origin, FindingKind.UNREACHABLE, f"{other.origin} takes all that it matches")]
    patterns = [other.function for other in earlier if other.function is not None]
    if rule.function is None or not patterns:
        return []
    parts = parts_of(rule.function)
    dead = [part for part in parts if proofs.finds_all(patterns, part)]
    if len(dead) == len(parts):
        return [RuleFinding(rule.origin, FindingKind.UNREACHABLE, "the rules before it take all that it matches")]
    return [
        RuleFinding(rule.origin, FindingKind.UNREACHABLE_PART, f"rules before it take all that '{part}' matches")
        for part in dead
    ]
