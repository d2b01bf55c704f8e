"""What holds for all profiles: agreement with the policy applied by hand, and conservation of every nanosecond."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiler.analysis.attribution.aggregate import merge_runs, run_tables
from profiler.analysis.attribution.call_stacks import merge_call_stacks, run_tree
from profiler.analysis.attribution.logical_stacks import expand
from profiler.analysis.attribution.owners import merge_owner_cells, owner_cells
from profiler.model.analysis_choices import DIMENSIONS, STACK_DIMENSIONS
from profiler.model.category import RuleSet
from profiler.model.costs import ArmCosts, CostTable
from profiler.model.event import Event
from profiler.model.sample_table import StackState
from profiler.pipeline import AnalysisOptions, Arm, arm_call_stacks, arm_costs
from support.attribution import attributed, categories_of_samples, rules
from support.attribution_by_hand import attribute_by_hand, logical_frames
from support.profile_from_text import DrawnSample, DrawnSymbols, draw, info_of

CPU_CLOCK = Event("cpu-clock", "ns", 1999, 0)
NAMES = ("a::f", "a::g", "b::f", "std::x", "std::y", "plain", "main", "malloc", "memmove")
DSOS = ("app", "libc.so", "[kernel]")
FILES = ("", "@x.c:1", "@x.c:2", "@y.h:3")

entries = st.builds("".join, st.tuples(st.sampled_from(NAMES), st.sampled_from(FILES)))
user_frames = st.builds(
    lambda dso, chain: f"{dso}!{' > '.join(chain)}", st.sampled_from(DSOS[:2]), st.lists(entries, min_size=1, max_size=3)
)
kernel_frames = st.sampled_from([f"[kernel]!{name}" for name in ("a::f", "irq", "fault", "plain")])
frames = st.one_of(user_frames, user_frames, kernel_frames)
samples = st.builds(
    DrawnSample,
    frames=st.lists(frames, min_size=1, max_size=7).map(tuple),
    weight=st.integers(0, 2**40),
    time_ns=st.integers(0, 1000),
    state=st.sampled_from(list(StackState)),
    tid=st.sampled_from([7, 8]),
    thread_name=st.sampled_from(["main", "worker"]),
)
profiles = st.lists(samples, max_size=12)

PATTERNS = ("^a::", "f$", "^std::", "^malloc$", "^main$", "plain|irq", "^b")


@st.composite
def rule_sets(draw_value: st.DrawFn) -> RuleSet:
    """Rules of all kinds; categories are numbered so that their flags never contradict each other."""
    texts = []
    for number in range(draw_value(st.integers(0, 6))):
        is_transparent = draw_value(st.booleans())
        lines = ["[[rule]]", "transparent = true" if is_transparent else f'category = "c{number}"']
        keys = draw_value(st.sets(st.sampled_from(["function", "file", "dso", "under"]), min_size=1, max_size=3))
        choices = {"file": ("x", "h$"), "dso": ("app", "libc", "kernel")}
        for key in sorted(keys):
            lines.append(f"{key} = '{draw_value(st.sampled_from(choices.get(key, PATTERNS)))}'")
        if not is_transparent:
            lines += [f"{flag} = true" for flag in ("passthrough", "fallback") if draw_value(st.booleans())]
        texts.append("\n".join(lines))
    return rules("\n".join(texts)) if texts else RuleSet("none", ())


def in_time_order(profile: list[DrawnSample]) -> list[DrawnSample]:
    return sorted(profile, key=lambda sample: sample.time_ns)


@given(profiles, rule_sets(), st.booleans())
def test_agrees_with_the_policy_applied_by_hand(profile: list[DrawnSample], rule_set: RuleSet, keep_lines: bool) -> None:
    run = attributed(draw(profile).symbolized(), rule_set, keep_lines)
    expected = [attribute_by_hand(sample, rule_set) for sample in in_time_order(profile)]
    assert categories_of_samples(run, "leaf") == [entry.leaf for entry in expected]
    assert categories_of_samples(run, "owner") == [entry.owner for entry in expected]
    rows = run.attribution.self_row[run.stacks.innermost[run.symbolized.capture.samples.stack]]
    functions = [run.symbolized.functions[number].key for number in run.stacks.function()[rows].tolist()]
    assert functions == [entry.self_frame.key for entry in expected]


def dimension_name(dimension: str, frame: object) -> str:
    if dimension in ("file", "line"):
        source = frame.file or f"[no source] {frame.dso}"  # type: ignore[attr-defined]
        return f"{source}:{frame.line}" if dimension == "line" and frame.file else source  # type: ignore[attr-defined]
    return str({"function": frame.key, "symbol": frame.symbol, "dso": frame.dso}[dimension])  # type: ignore[attr-defined]


@given(profiles, rule_sets())
def test_self_and_total_agree_with_sums_by_hand(profile: list[DrawnSample], rule_set: RuleSet) -> None:
    run = attributed(draw(profile).symbolized(), rule_set)
    for dimension, table in run_tables(run, STACK_DIMENSIONS, "leaf").items():
        own: Counter[str] = Counter()
        total: Counter[str] = Counter()
        count: Counter[str] = Counter()
        squares: Counter[str] = Counter()
        for sample in profile:
            name = dimension_name(dimension, attribute_by_hand(sample, rule_set).self_frame)
            own[name] += sample.weight
            count[name] += 1
            squares[name] += sample.weight**2
            for name in {dimension_name(dimension, frame) for frame in logical_frames(sample)}:
                total[name] += sample.weight
        cost = merge_runs(dimension, [table])
        assert dict(zip(cost.names, cost.self_weight[:, 0].tolist(), strict=True)) == {name: own[name] for name in cost.names}
        assert +Counter(dict(zip(cost.names, cost.total_weight[:, 0].tolist(), strict=True))) == +total
        assert +Counter(dict(zip(cost.names, cost.self_samples[:, 0].tolist(), strict=True))) == count
        found = dict(zip(cost.names, cost.self_squares[:, 0].tolist(), strict=True))
        assert {name: square for name, square in found.items() if square} == pytest.approx(dict(+squares))


@given(profiles, rule_sets(), st.sampled_from(["leaf", "owner"]))
def test_weights_are_conserved(profile: list[DrawnSample], rule_set: RuleSet, view: str) -> None:
    run = attributed(draw(profile).symbolized(), rule_set)
    total = sum(sample.weight for sample in profile)
    for dimension, table in run_tables(run, DIMENSIONS, view).items():
        cost = merge_runs(dimension, [table])
        assert cost.self_weight.sum() == cost.total.sum() == total
        assert cost.self_samples.sum() == len(profile)
        assert (cost.self_weight <= cost.total_weight).all()
        assert (cost.total_weight <= total).all()
        own, overall = (weights.sum(axis=1).tolist() for weights in (cost.self_weight, cost.total_weight))
        rows = list(zip(own, overall, cost.names, strict=True))
        assert rows == sorted(rows, key=lambda row: (-row[0], -row[1], row[2]))
    leaf = merge_runs("category", [run_tables(run, ("category",), "leaf")["category"]])
    by_leaf: Counter[str] = Counter()
    for cell in merge_owner_cells([owner_cells(run)]):
        by_leaf[cell.leaf] += cell.weight
    assert by_leaf == +Counter(dict(zip(leaf.names, leaf.self_weight[:, 0].tolist(), strict=True)))


@given(profiles)
def test_logical_stacks_are_what_was_drawn(profile: list[DrawnSample]) -> None:
    symbolized = draw(profile).symbolized()
    stacks = expand(symbolized)
    rows = np.arange(len(stacks))
    assert (stacks.prefix < rows).all()
    assert [row for level in stacks.levels for row in range(level.start, level.stop)] == rows.tolist()
    function = stacks.function()
    for stack, sample in zip(symbolized.capture.samples.stack.tolist(), in_time_order(profile), strict=True):
        drawn = logical_frames(sample)
        found = stacks.rows_leaf_first(int(stacks.innermost[stack]))
        assert [symbolized.functions[function[row]].key for row in found] == [frame.key for frame in drawn]
        assert [int(stacks.line[row]) for row in found] == [frame.line for frame in drawn]
        assert [symbolized.functions[stacks.symbol[row]].key for row in found] == [frame.symbol for frame in drawn]


@given(st.lists(profiles, min_size=1, max_size=4), rule_sets())
def test_call_stacks_keep_every_weight_and_path(runs: list[list[DrawnSample]], rule_set: RuleSet) -> None:
    attributed_runs = [attributed(draw(profile).symbolized(), rule_set) for profile in runs]
    merged = merge_call_stacks("arm", CPU_CLOCK, [run_tree(run) for run in attributed_runs])
    assert (merged.prefix < np.arange(len(merged.prefix))).all()
    for column, profile in enumerate(runs):
        expected: Counter[tuple[str, ...]] = Counter()
        for sample in profile:
            expected[tuple(frame.key for frame in logical_frames(sample))] += sample.weight
        found: Counter[tuple[str, ...]] = Counter()
        by_category: Counter[str] = Counter()
        for row in np.flatnonzero(merged.weight[:, column]).tolist():
            path, walk = [], row
            while walk >= 0:
                path.append(merged.frames[merged.frame[walk]].name)
                walk = int(merged.prefix[walk])
            weight = int(merged.weight[row, column])
            found[tuple(path)] += weight
            by_category[merged.categories[merged.category[row]]] += weight
        assert found == +expected
        leaf: Counter[str] = Counter()
        for sample in profile:
            leaf[attribute_by_hand(sample, rule_set).leaf] += sample.weight
        assert by_category == +leaf


def arm_of(runs: list[list[DrawnSample]], order: list[int]) -> tuple[Arm, DrawnSymbols]:
    symbols = DrawnSymbols()
    captures = []
    for number in order:
        profile = draw(runs[number], info_of(round_number=number))
        symbols.chains.update(profile.symbols.chains)
        captures.append(profile.capture)
    return Arm("arm", captures), symbols


def as_values(costs: ArmCosts) -> tuple[object, ...]:
    def table(entry: CostTable) -> tuple[object, ...]:
        columns = (entry.self_weight, entry.total_weight, entry.self_samples, entry.total)
        return (entry.names, entry.labels, *(column.tolist() for column in columns))

    plain = replace(costs, tables={}, phase_windows_ns=None)
    return (plain, {name: table(entry) for name, entry in costs.tables.items()})


@settings(max_examples=max(20, settings.default.max_examples // 4))
@given(st.lists(profiles, min_size=2, max_size=3), st.randoms(use_true_random=False))
def test_the_order_of_captures_never_changes_the_result(runs: list[list[DrawnSample]], shuffler: random.Random) -> None:
    options = AnalysisOptions(rules=("common",), dimensions=DIMENSIONS)
    order = list(range(len(runs)))
    arm, symbols = arm_of(runs, order)
    shuffler.shuffle(order)
    shuffled, _ = arm_of(runs, order)
    assert as_values(arm_costs(arm, options, symbols)) == as_values(arm_costs(shuffled, options, symbols))
    one, other = arm_call_stacks(arm, options, symbols), arm_call_stacks(shuffled, options, symbols)
    assert one.frames == other.frames
    assert one.prefix.tolist() == other.prefix.tolist()
    assert one.weight.tolist() == other.weight.tolist()


@given(st.lists(profiles, min_size=1, max_size=4), rule_sets(), st.sampled_from(["leaf", "owner"]))
def test_merging_then_attributing_is_attributing_then_merging(
    runs: list[list[DrawnSample]], rule_set: RuleSet, view: str
) -> None:
    tables = [run_tables(attributed(draw(profile).symbolized(), rule_set), DIMENSIONS, view) for profile in runs]
    together = attributed(draw([sample for profile in runs for sample in profile]).symbolized(), rule_set)
    for dimension, table in run_tables(together, DIMENSIONS, view).items():
        apart = merge_runs(dimension, [entry[dimension] for entry in tables])
        whole = merge_runs(dimension, [table])
        assert apart.names == whole.names
        assert apart.self_weight.sum(axis=1).tolist() == whole.self_weight[:, 0].tolist()
        assert apart.total_weight.sum(axis=1).tolist() == whole.total_weight[:, 0].tolist()
        assert apart.self_samples.sum(axis=1).tolist() == whole.self_samples[:, 0].tolist()
