"""Explanation: why time stands in its category."""

from __future__ import annotations

from profiler.model.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class PassedFrame:
    """A frame that did not name the stack.  ``reason``: "no rule matches", or "transparent: file:line" with the rule."""

    function: str
    reason: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """One way in which samples came to their category: all samples with the same innermost function, the same naming frame
    and the same rule.

    ``function``: canonical name of the innermost frame.  ``category``, ``owner``: in the leaf and in the owner view.
    ``rule_origin``: "file:line" of the rule, "" for ``other``.  ``rule_pattern``: its patterns, of a list the one that was
    found.  ``named_by``: function that the rule took, "" for ``other``.  ``passed_over``: frames between, innermost first;
    ``stack_leaf_first``: all functions; both of the heaviest such stack.  ``weight`` in the event's unit, ``share`` of the
    arm's total; ``weight`` and ``samples`` are sums over ``runs`` runs.
    """

    function: str
    category: str
    owner: str
    rule_origin: str
    rule_pattern: str
    named_by: str
    passed_over: tuple[PassedFrame, ...]
    stack_leaf_first: tuple[str, ...]
    weight: int
    samples: int
    share: float
    runs: int = 1
