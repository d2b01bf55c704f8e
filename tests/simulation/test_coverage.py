"""How often intervals that claim 95 % hold the truth: at least 94 % for normal noise."""

from __future__ import annotations

import pytest

from profiler.analysis import stats
from profiler.analysis.stats_ratio import RelativeChange, paired_relative_change, welch_relative_change
from support.noise import Setting, generator_of, rate_error, two_arms

CLAIMED = 0.94
RUNS = (3, 5, 10, 30)
# The candidate's true mean over the baseline's.
RATIOS = (1.0, 0.97, 1.2, 0.5, 3.0, 0.02)

experiments_of = pytest.mark.parametrize(
    "experiments", [pytest.param(1500, id="quick"), pytest.param(40_000, id="full", marks=pytest.mark.full)]
)


def share_that_hold(found: stats.TTest | RelativeChange, truth: float) -> float:
    """An interval without finite ends claims nothing, so it holds everything."""
    holds = (found.low <= truth) & (truth <= found.high)
    if isinstance(found, RelativeChange):
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
        difference = share_that_hold(stats.paired_t(baseline, candidate), 100 * (ratio - 1))
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
        difference = share_that_hold(stats.welch_t(baseline, candidate), 100 * (ratio - 1))
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
