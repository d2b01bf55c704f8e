"""Data frames hold what the tables hold."""

from __future__ import annotations

import pytest
import scipy.stats

from profiler.analysis import to_pandas
from profiler.analysis.comparison.compare import CompareOptions, compare_arms
from profiler.model.call_stacks import CallStacks
from profiler.model.costs import ArmCosts
from profiler.pipeline import AnalysisOptions, Arm, arm_call_stacks, arm_costs
from support.arms import Place, arm
from support.profile_from_text import info_of, profile_from_text

FIRST = profile_from_text("weight  5  2\n---\nmain  main\nsha256::digest  libc.so!memmove", info_of(round_number=0))
SECOND = profile_from_text("weight  7\n---\nmain\nsha256::digest", info_of(round_number=1))


def costs() -> ArmCosts:
    FIRST.symbols.chains.update(SECOND.symbols.chains)
    arm = Arm("base", [FIRST.capture, SECOND.capture])
    return arm_costs(arm, AnalysisOptions(dimensions=("category", "function")), FIRST.symbols)


def stacks() -> CallStacks:
    FIRST.symbols.chains.update(SECOND.symbols.chains)
    return arm_call_stacks(Arm("base", [FIRST.capture, SECOND.capture]), AnalysisOptions(), FIRST.symbols)


def test_costs() -> None:
    frame = to_pandas.costs_frame(costs())
    assert frame["name"].tolist() == ["SHA-256", "SHA-256", "memmove", "memmove"]
    assert frame["round"].tolist() == [0, 1, 0, 1]
    assert frame["self"].tolist() == [5, 7, 2, 0]
    assert frame["samples"].tolist() == [1, 1, 1, 0]
    assert str(frame["self"].dtype) == "int64"


def test_one_table() -> None:
    frame = to_pandas.cost_table_frame(costs().tables["category"])
    assert frame.loc["SHA-256"].tolist() == [5, 7]
    assert frame.index.name == "category"


def test_a_comparison() -> None:
    arms = [arm(name, {"x": values}, Place(session=name)) for name, values in (("a", [10, 12, 14]), ("b", [20, 22, 27]))]
    frame = to_pandas.comparison_frame(compare_arms(arms[0], [arms[1]], CompareOptions()))
    assert frame["name"].tolist() == ["x", "total"]
    first = frame.iloc[0]
    assert (first["candidate"], first["baseline"], first["candidate_mean"], first["delta"]) == ("b", 12.0, 23.0, 11.0)
    expected = scipy.stats.ttest_ind([20, 22, 27], [10, 12, 14], equal_var=False)
    interval = expected.confidence_interval(0.95)
    assert (first["p"], first["delta_low"], first["delta_high"]) == pytest.approx((expected.pvalue, *interval))
    assert first["relative"] == pytest.approx(11 / 12)


def test_owners() -> None:
    frame = to_pandas.owners_frame(costs())
    assert frame.to_dict("records") == [
        {"leaf": "SHA-256", "owner": "SHA-256", "weight": 12},
        {"leaf": "memmove", "owner": "memmove", "weight": 2},
    ]


def test_call_stacks() -> None:
    frame = to_pandas.call_stacks_frame(stacks())
    assert dict(zip(frame["stack"], frame["weight"], strict=True)) == {"main;sha256::digest": 12, "main;memmove": 2}
    assert set(frame["category"]) == {"SHA-256", "memmove"}
