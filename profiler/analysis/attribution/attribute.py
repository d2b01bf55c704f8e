"""One sample, one category: the rules put to logical stacks.

Leaf view: from the innermost frame outward, the first frame that a category rule takes names the stack.  Frames taken by a
transparent rule and frames that nothing matches are passed over.  Where no ordinary rule names any frame, a second walk
tries the fallback rules.  Owner view: a stack named by a pass-through category is charged to the first frame further out
whose rule is not pass-through (ordinary rules first, then fallback rules); without such a frame it stays where it was.
"""

from __future__ import annotations

import numpy as np

from profiler.analysis.attribution.level_order import nearest_row
from profiler.analysis.attribution.logical_stacks import LogicalStacks
from profiler.model.arrays import BoolColumn, Int32Column, UInt64Column
from profiler.model.category import RuleMatches, RuleSet
from profiler.model.quick_dataclass import dataclass

_WORD_BITS = 64


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Attribution:
    """For each logical row, what holds for the stack that ends there; -1 in a column = none.

    ``match``: entry of ``RuleMatches.rule`` that takes the frame itself, in the first walk or, for a frame without one, in
    the second.  ``leaf``, ``owner``: logical row of the frame that named the stack.  ``leaf_category``, ``owner_category``:
    rows of ``RuleMatches.categories``, -1 = other.  ``self_row``: the innermost frame that is not transparent; the
    innermost frame when all are.
    """

    match: Int32Column
    is_transparent: BoolColumn
    leaf: Int32Column
    owner: Int32Column
    leaf_category: Int32Column
    owner_category: Int32Column
    self_row: Int32Column


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _OwnCategories:
    """The category that each row's own frame gives, in the first and in the second walk; -1 = none."""

    ordinary: Int32Column
    fallback: Int32Column


def attribute(stacks: LogicalStacks, matches: RuleMatches, rule_set: RuleSet) -> Attribution:
    """Attributes every row of ``stacks``; ``matches`` are those of ``stacks.places`` with ``rule_set``."""
    is_fallback_rule = np.array([rule.is_fallback for rule in rule_set.rules], np.bool_)
    is_fallback = is_fallback_rule[matches.rule]
    outer_hits = _outer_hits(stacks, matches)
    first = _first_match(stacks, matches, outer_hits, ~is_fallback)
    second = np.where(first >= 0, -1, _first_match(stacks, matches, outer_hits, is_fallback)).astype(np.int32)
    is_transparent = _at(matches.category, first) < 0
    is_transparent &= first >= 0
    own = _OwnCategories(_at(matches.category, first), _at(matches.category, second))

    named = nearest_row(stacks.levels, stacks.prefix, own.ordinary >= 0)
    named_by_fallback = nearest_row(stacks.levels, stacks.prefix, own.fallback >= 0)
    leaf = np.where(named >= 0, named, named_by_fallback)
    leaf_category = np.where(named >= 0, _at(own.ordinary, named), _at(own.fallback, named_by_fallback))
    owner, owner_category = _owners(stacks, matches, own, leaf, leaf_category)
    opaque = nearest_row(stacks.levels, stacks.prefix, ~is_transparent)
    return Attribution(
        match=np.where(first >= 0, first, second),
        is_transparent=is_transparent,
        leaf=leaf,
        owner=owner,
        leaf_category=leaf_category,
        owner_category=owner_category,
        self_row=np.where(opaque >= 0, opaque, np.arange(len(opaque), dtype=np.int32)),
    )


def _at(column: Int32Column, rows: Int32Column) -> Int32Column:
    """``column[rows]``, with -1 where the row is -1."""
    return np.append(column, np.int32(-1))[rows]


def _owners(
    stacks: LogicalStacks, matches: RuleMatches, own: _OwnCategories, leaf: Int32Column, leaf_category: Int32Column
) -> tuple[Int32Column, Int32Column]:
    is_passthrough = np.append(matches.is_passthrough, False)
    owns = (own.ordinary >= 0) & ~is_passthrough[own.ordinary]
    owns_by_fallback = (own.fallback >= 0) & ~is_passthrough[own.fallback]
    ordinary = nearest_row(stacks.levels, stacks.prefix, owns)
    nearest_fallback = nearest_row(stacks.levels, stacks.prefix, owns_by_fallback)
    fallback = _at(nearest_fallback, _at(stacks.prefix, leaf))
    moves = is_passthrough[leaf_category]
    to_ordinary = moves & (ordinary >= 0)
    to_fallback = moves & ~to_ordinary & (fallback >= 0)
    owner = np.where(to_ordinary, ordinary, np.where(to_fallback, fallback, leaf))
    category = np.where(to_fallback, _at(own.fallback, fallback), leaf_category)
    return owner, np.where(to_ordinary, _at(own.ordinary, ordinary), category)


def _outer_hits(stacks: LogicalStacks, matches: RuleMatches) -> UInt64Column:
    """uint64[words, rows]: bit u % 64 of word u // 64 is set where under pattern u is found in a frame further out."""
    word_count = -(-len(matches.under_patterns) // _WORD_BITS) if (matches.under >= 0).any() else 0
    outer = np.zeros((word_count, len(stacks)), np.uint64)
    function = stacks.function()
    for word in range(word_count):
        hits = matches.under_hits[word * _WORD_BITS : (word + 1) * _WORD_BITS]
        bits = np.zeros(hits.shape[1], np.uint64)
        for position, found in enumerate(hits):
            bits |= found.astype(np.uint64) << np.uint64(position)
        own, column = bits[function], outer[word]
        for level in stacks.levels[1:]:
            caller = stacks.prefix[level]
            column[level] = column[caller] | own[caller]
    return outer


def _first_match(stacks: LogicalStacks, matches: RuleMatches, outer_hits: UInt64Column, is_eligible: BoolColumn) -> Int32Column:
    """For each row the first eligible entry of its place whose ``under`` pattern, if any, holds there; -1 without one."""
    entries = np.flatnonzero(is_eligible).astype(np.int32)
    start = np.searchsorted(entries, matches.start)
    count = np.diff(start)
    result = np.full(len(stacks), -1, np.int32)
    pending = np.flatnonzero(count[stacks.place] > 0)
    attempt = 0
    while len(pending):
        entry = entries[start[stacks.place[pending]] + attempt]
        under = matches.under[entry]
        holds = under < 0
        asks = np.flatnonzero(~holds)
        pattern = under[asks]
        words = outer_hits[pattern // _WORD_BITS, pending[asks]]
        holds[asks] = (words >> (pattern % _WORD_BITS).astype(np.uint64)) & np.uint64(1) > 0
        result[pending[holds]] = entry[holds]
        attempt += 1
        pending = pending[~holds]
        pending = pending[count[stacks.place[pending]] > attempt]
    return result
