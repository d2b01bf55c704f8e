"""Category rules as values; how they are loaded and matched is the business of ``profiler.rules``."""

from __future__ import annotations

from profiler.model.arrays import BoolColumn, Int32Column
from profiler.model.quick_dataclass import dataclass
from profiler.model.rule_pattern import RulePattern

OTHER = "other"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; every pattern that is given must match (``None`` = not given), by ``re.search``.

    Exactly one of ``category`` and ``is_transparent`` is set.  ``is_fallback`` rules are tried only for stacks in which no
    other rule named a frame.  ``origin`` is "file:line" for messages.
    """

    category: str
    group: str
    function: RulePattern | None
    file: RulePattern | None
    dso: RulePattern | None
    under: RulePattern | None
    is_transparent: bool
    is_passthrough: bool
    is_fallback: bool
    origin: str


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Rules in the order in which they are tried.  ``name``: the rule sets it was made of, e.g. "ethereum+native"."""

    name: str
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Places:
    """The n distinct (function, file, DSO) triples of a symbolized capture: rows of its function, file and DSO tables;
    ``file`` -1 = unknown."""

    function: Int32Column
    file: Int32Column
    dso: Int32Column

    def __len__(self) -> int:
        return len(self.function)


@dataclass(frozen=True, slots=True)
class RuleMatches:
    """Which rules match which of n places, ``under`` patterns left aside (only a stack can decide them).

    ``start``: int32[n + 1]; the matches of place i are ``start[i]:start[i + 1]`` of the columns below, in the order in which
    they are to be tried: ordinary rules in file order, then fallback rules in file order; nothing follows an ordinary rule
    without ``under``.  ``rule``: row of ``RuleSet.rules``.  ``category``: row of ``categories``, -1 for a transparent rule.
    ``under``: row of ``under_patterns``, -1 = none.
    ``categories`` are distinct names, ``groups`` and ``is_passthrough`` are per category.
    ``under_hits``: bool[patterns, functions]: pattern found in the function's key or trait key.
    """

    start: Int32Column
    rule: Int32Column
    category: Int32Column
    under: Int32Column
    categories: tuple[str, ...]
    groups: tuple[str, ...]
    is_passthrough: BoolColumn
    under_patterns: tuple[str, ...]
    under_hits: BoolColumn
