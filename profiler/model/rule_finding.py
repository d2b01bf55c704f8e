"""What a check of rules found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from profiler.model.costs import OtherFunction
from profiler.model.quick_dataclass import dataclass


class FindingKind(StrEnum):
    """Mistakes, then what is only worth knowing."""

    UNREACHABLE = "unreachable"
    NEVER_MATCHES = "never matches"
    EXPLOSIVE = "explosive"
    UNREACHABLE_PART = "unreachable part"
    OVERLAP = "overlap"
    ALWAYS_TAKEN = "taken before"
    UNUSED = "unused"


MISTAKES = frozenset({FindingKind.UNREACHABLE, FindingKind.NEVER_MATCHES, FindingKind.EXPLOSIVE})


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """``origin``: "file:line" of the rule.  ``message``: one line, without the origin."""

    origin: str
    kind: FindingKind
    message: str

    @property
    def is_mistake(self) -> bool:
        return self.kind in MISTAKES


@dataclass(frozen=True, slots=True)
class NamedPlace:
    """What rules look at in one frame; "" = unknown.  ``trait_key``: "Trait::f" for an implementation of a trait."""

    key: str
    trait_key: str = ""
    file: str = ""
    dso: str = ""


@dataclass(frozen=True, slots=True)
class RuleUse:
    """How a rule set fares on an arm.  ``places``: distinct, of all frames.  ``taken``: "file:line" of the rules that took a
    frame -> weight of the samples that they named (0 for transparent rules).  ``others``: functions that nothing named."""

    arm: str
    places: Sequence[NamedPlace]
    taken: Mapping[str, int]
    others: Sequence[OtherFunction]
    total: int
