"""Rules tried on names: which rules match which, whatever stands before them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profiler.model.category import Rule, RuleSet
from profiler.model.rule_finding import FindingKind, NamedPlace, RuleFinding

_NAMES_SHOWN = 3


def overlapping_rules(rule_set: RuleSet, files: Sequence[str], places: Sequence[NamedPlace]) -> list[RuleFinding]:
    """Rules of ``files`` that share names with an earlier rule of another category, and those all of whose names are taken
    before.  Rules with ``under`` and fallback rules are meant to share names and do not count."""
    taken: dict[tuple[str, str], tuple[Rule, dict[str, None]]] = {}
    reached: set[str] = set()
    losing: dict[str, Rule] = {}
    rules = [rule for rule in rule_set.rules if rule.under is None and not rule.is_fallback]
    for place in dict.fromkeys(places):
        matching = _matching(rules, place)
        first = next(matching, None)
        if first is None:
            continue
        reached.add(first.origin)
        for rule in matching:
            losing[rule.origin] = rule
            if rule.category != first.category:
                taken.setdefault((first.origin, rule.origin), (first, {}))[1][place.key or place.dso] = None
    found = [_overlap(first, origin, tuple(names)) for (_, origin), (first, names) in taken.items() if _is_in(origin, files)]
    for origin in losing:
        if origin not in reached and _is_in(origin, files):
            message = "of the names tried, every one that it matches is taken by a rule before it"
            found.append(RuleFinding(origin, FindingKind.ALWAYS_TAKEN, message))
    return found


def matches_place(rule: Rule, place: NamedPlace) -> bool:
    """Whether the rule's patterns, ``under`` left aside, are found in the place."""
    names = (place.key,) if rule.is_transparent or not place.trait_key else (place.key, place.trait_key)
    if rule.function is not None and not any(map(rule.function.search, names)):
        return False
    pairs = ((rule.file, place.file), (rule.dso, place.dso))
    return all(pattern is None or (text and pattern.search(text)) for pattern, text in pairs)


def _matching(rules: Sequence[Rule], place: NamedPlace) -> Iterator[Rule]:
    return (rule for rule in rules if matches_place(rule, place))


def _overlap(first: Rule, origin: str, names: Sequence[str]) -> RuleFinding:
    shown = ", ".join(names[:_NAMES_SHOWN])
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    verb = "is" if len(names) == 1 else "are"
    what = "passed over" if first.is_transparent else f"'{first.category}'"
    return RuleFinding(origin, FindingKind.OVERLAP, f"{shown}{more} {verb} {what} by {first.origin}, which stands before it")


def _is_in(origin: str, files: Sequence[str]) -> bool:
    return origin.rpartition(":")[0] in files
