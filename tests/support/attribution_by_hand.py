"""The attribution policy once more: one drawn sample at a time, in plain Python, without trees or tables.

Written from the policy, as the reference that the vectorised code must agree with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from profiler.model.category import OTHER, Rule, RuleSet
from support.profile_from_text import APP, DrawnSample


@dataclass(frozen=True, slots=True)
class LogicalFrame:
    key: str
    file: str
    line: int
    dso: str
    symbol: str


@dataclass(frozen=True, slots=True)
class HandAttribution:
    """``frames`` innermost first."""

    leaf: str
    owner: str
    self_frame: LogicalFrame
    frames: tuple[LogicalFrame, ...]


def logical_frames(sample: DrawnSample) -> tuple[LogicalFrame, ...]:
    """Innermost first, inline frames included."""
    found = []
    for text in reversed(sample.frames):
        dso, bang, chain = text.partition("!")
        parts = (chain if bang else text).split(" > ")
        symbol = parts[0].partition("@")[0]
        for part in reversed(parts):
            key, _, place = part.partition("@")
            file, _, line = place.partition(":")
            found.append(LogicalFrame(key, file, int(line or 0), dso if bang else APP, symbol))
    return tuple(found)


def attribute_by_hand(sample: DrawnSample, rule_set: RuleSet) -> HandAttribution:
    frames = logical_frames(sample)
    ordinary = [rule for rule in rule_set.rules if not rule.is_fallback]
    fallback = [rule for rule in rule_set.rules if rule.is_fallback]
    first = [_first(frames, n, ordinary) for n in range(len(frames))]
    second = [None if first[n] else _first(frames, n, fallback) for n in range(len(frames))]
    named = [n for n, rule in enumerate(first) if rule and rule.category]
    named_by_fallback = [n for n, rule in enumerate(second) if rule]
    if named:
        leaf, leaf_rule = named[0], first[named[0]]
    elif named_by_fallback:
        leaf, leaf_rule = named_by_fallback[0], second[named_by_fallback[0]]
    else:
        leaf, leaf_rule = len(frames), None
    owner_rule = leaf_rule
    if leaf_rule and leaf_rule.is_passthrough:
        further_out = [rule for rule in first[leaf + 1 :] if rule and rule.category and not rule.is_passthrough]
        further_out += [rule for rule in second[leaf + 1 :] if rule and not rule.is_passthrough]
        owner_rule = further_out[0] if further_out else leaf_rule
    opaque = [frame for frame, rule in zip(frames, first, strict=True) if not (rule and rule.is_transparent)]
    return HandAttribution(
        leaf=leaf_rule.category if leaf_rule else OTHER,
        owner=owner_rule.category if owner_rule else OTHER,
        self_frame=opaque[0] if opaque else frames[0],
        frames=frames,
    )


def _first(frames: Sequence[LogicalFrame], number: int, rules: Sequence[Rule]) -> Rule | None:
    frame, outer = frames[number], frames[number + 1 :]
    for rule in rules:
        if (
            (rule.function is None or rule.function.search(frame.key))
            and (rule.file is None or (frame.file and rule.file.search(frame.file)))
            and (rule.dso is None or rule.dso.search(frame.dso))
            and (rule.under is None or any(rule.under.search(other.key) for other in outer))
        ):
            return rule
    return None
