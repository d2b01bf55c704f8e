"""How often intervals that claim 95 % hold the truth: at least 94 % where both arms have noise of one shape and scale."""

from __future__ import annotations

import numpy as np
import pytest

from profiler.analysis.statistics import t_tests
from profiler.analysis.statistics.ratio import (
    PartAndWhole,
    RelativeChange,
    Share,
    paired_relative_change,
    paired_share,
    welch_relative_change,
    welch_share,
)
from support.noise import KINDS, Setting, generator_of, rate_error, two_arms

CLAIMED = 0.94
RUNS = (3, 5, 10, 30)
# The candidate's true mean over the baseline's.
RATIOS = (1.0, 0.97, 1.2, 0.5, 3.0, 0.02)

experiments_of = pytest.mark.parametrize(
    "experiments", [pytest.param(1500, id="quick"), pytest.param(40_000, id="full", marks=pytest.mark.full)]
)


def share_that_hold(found: t_tests.TTest | RelativeChange | Share, truth: float) -> float:
    """An interval without finite ends claims nothing, so it holds everything."""
    holds = (found.low <= truth) & (truth <= found.high)
    if not isinstance(found, t_tests.TTest):
        holds |= ~found.is_bounded
    return float(holds.mean())


@experiments_of
@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("drift", [0.0, 2.0])
def test_paired_intervals(drift: float, ratio: float, experiments: int) -> None:
    """Drift scales with the arm, as a slower machine slows both builds."""
    for runs in RUNS:
        setting = Setting(runs=runs, drift=drift)
        baseline, candidate = two_arms(setting, experiments, generator_of("paired", setting, ratio))
        candidate = candidate * ratio
        difference = share_that_hold(t_tests.paired_t(baseline, candidate), 100 * (ratio - 1))
        relative = share_that_hold(paired_relative_change(baseline, candidate), ratio - 1)
        print(f"\npaired, {runs} runs, drift {drift}, ratio {ratio}: difference {difference:.4f}, relative {relative:.4f}")
        assert min(difference, relative) >= CLAIMED - rate_error(CLAIMED, experiments)


@experiments_of
@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("spread", [1.0, 3.0])
def test_welch_intervals(spread: float, ratio: float, experiments: int) -> None:
    for runs in RUNS:
        setting = Setting(runs=runs, candidate_spread=spread)
        baseline, candidate = two_arms(setting, experiments, generator_of("welch", setting, ratio))
        candidate = candidate * ratio
        difference = share_that_hold(t_tests.welch_t(baseline, candidate), 100 * (ratio - 1))
        relative = share_that_hold(welch_relative_change(baseline, candidate), ratio - 1)
        print(f"\nwelch, {runs} runs, spread x {spread}, ratio {ratio}: difference {difference:.4f}, relative {relative:.4f}")
        assert min(difference, relative) >= CLAIMED - rate_error(CLAIMED, experiments)


@pytest.mark.parametrize("noise_percent", [5, 20, 40])
def test_relative_intervals_of_very_noisy_arms(noise_percent: int) -> None:
    """Where the baseline may be near 0 the interval has no finite ends; where it has them, it keeps its promise."""
    for runs in RUNS:
        setting = Setting(runs=runs)
        baseline, candidate = (
            100 + noise_percent * (values - 100) for values in two_arms(setting, 1500, generator_of("noisy", setting))
        )
        for found in (paired_relative_change(baseline, candidate), welch_relative_change(baseline, candidate)):
            assert share_that_hold(found, 0.0) >= CLAIMED - rate_error(CLAIMED, 1500)


@pytest.mark.parametrize("experiments", [pytest.param(500, id="quick"), pytest.param(4000, id="full", marks=pytest.mark.full)])
@pytest.mark.parametrize("noise", KINDS)
@pytest.mark.parametrize("is_paired", [True, False], ids=["paired", "welch"])
def test_relative_changes_and_shares_of_the_gain(is_paired: bool, noise: str, experiments: int) -> None:
    """One row of two loses 6 of 100 and the other 4: -5 % of the total, of which the first has 60 %."""
    held: dict[str, list[float]] = {"relative": [], "share": [], "share, bounded": []}
    for runs in (4, 5, 10, 30):
        setting = Setting(noise, runs, rows=2, common=1.0)
        base, cand = two_arms(setting, experiments, generator_of("share", setting, is_paired))
        cand = cand - np.array([[6.0], [4.0]])
        relative = (paired_relative_change if is_paired else welch_relative_change)(base.sum(axis=1), cand.sum(axis=1))
        arms = [PartAndWhole(arm[:, 0, :], arm.sum(axis=1)) for arm in (base, cand)]
        share = (paired_share if is_paired else welch_share)(arms[0], arms[1])
        held["relative"].append(share_that_hold(relative, -0.05))
        held["share"].append(share_that_hold(share, 0.6))
        bounded = ((share.low <= 0.6) & (share.high >= 0.6))[share.is_bounded]
        held["share, bounded"].append(float(bounded.mean()))
    for name, rates in held.items():
        print(f"\n{'paired' if is_paired else 'welch'}, {noise}, {name}: held {min(rates):.3f} - {max(rates):.3f}")
    assert min(min(rates) for rates in held.values()) >= CLAIMED - rate_error(CLAIMED, experiments)
    if noise == "normal":
        assert max(held["relative"] + held["share"]) <= 0.975 + rate_error(0.975, experiments)
