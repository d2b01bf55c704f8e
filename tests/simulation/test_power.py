"""How often an effect is found: as often as ``visible_effect`` promises."""

from __future__ import annotations

import numpy as np
import pytest

from profiler.analysis import stats
from profiler.analysis.compare import CompareOptions, compare_arms
from profiler.analysis.stats_power import POWER, NoiseVariance, runs_needed, visible_effect
from profiler.analysis.stats_spread import sampling_variance
from profiler.model.comparison import Verdict
from support.arms import arm
from support.noise import Setting, generator_of, rate_error, two_arms

TOLERANCE = 0.05

experiments_of = pytest.mark.parametrize(
    "experiments", [pytest.param(2000, id="quick"), pytest.param(20_000, id="full", marks=pytest.mark.full)]
)


def detection_rate(setting: Setting, effect: float, is_paired: bool, experiments: int) -> float:
    """Share of the experiments in which the one row that changed is flagged with the right sign, among rows that did not."""
    baseline, candidate = two_arms(setting, experiments, generator_of("power", setting, is_paired))
    candidate[:, 0, :] -= effect
    test = (stats.paired_t if is_paired else stats.welch_t)(baseline, candidate)
    flagged = (stats.holm(test.p) < stats.ALPHA) & (test.difference < 0)
    return float(flagged[:, 0].mean())


@experiments_of
@pytest.mark.parametrize("is_paired", [True, False], ids=["paired", "welch"])
@pytest.mark.parametrize("rows", [1, 5, 20])
def test_the_visible_effect_is_found_as_often_as_promised(rows: int, is_paired: bool, experiments: int) -> None:
    """Planted is the mean of the effects that such experiments promise, each from its own estimate of the noise."""
    for runs in (3, 5, 10, 30):
        setting = Setting(runs=runs, rows=rows)
        test = (stats.paired_t if is_paired else stats.welch_t)(
            *two_arms(setting, experiments, generator_of("promise", setting))
        )
        effect = float(visible_effect(test.standard_error[:, 0], test.degrees[:, 0], rows).mean())
        rate = detection_rate(setting, effect, is_paired, experiments)
        kind = "paired" if is_paired else "welch"
        print(f"\n{kind}, {runs} runs, {rows} rows: effect {effect:.2f} sd found in {100 * rate:.1f} %")
        assert abs(rate - POWER) <= TOLERANCE


@experiments_of
@pytest.mark.parametrize("is_paired", [True, False], ids=["paired", "welch"])
def test_runs_needed_find_the_effect(is_paired: bool, experiments: int) -> None:
    for effect in (0.5, 1.0, 2.0):
        noise = NoiseVariance(np.array([2.0]), None) if is_paired else NoiseVariance(np.array([1.0]), np.array([1.0]))
        runs = int(runs_needed(np.array([effect]), noise, 5)[0])
        rate = detection_rate(Setting(runs=runs, rows=5), effect, is_paired, experiments)
        print(f"\n{'paired' if is_paired else 'welch'}, effect {effect} sd: {runs} runs find it in {100 * rate:.1f} %")
        assert POWER - TOLERANCE <= rate <= POWER + 2 * TOLERANCE


@pytest.mark.parametrize("noise", ["t3", "exponential"])
def test_power_does_not_vanish_for_other_noise(noise: str) -> None:
    for runs in (5, 10):
        assert detection_rate(Setting(noise, runs=runs, rows=5), 4.0, True, 1000) > 0.5


@pytest.mark.parametrize("runs", [5, 10])
def test_a_planted_change_is_found_by_a_whole_comparison(runs: int) -> None:
    """20 % off a row of 300 ms that is sampled at 1 kHz: sampling alone gives it a spread of 5.4 % per run, runs 1 %."""
    generator = generator_of("planted", runs)
    means = np.array([900, 500, 300, 30, 4], dtype=np.float64)
    found = wrong = 0
    for _ in range(60):
        arms = []
        for name, factor in (("a", 1.0), ("b", 0.8)):
            changed = means * np.where(np.arange(len(means)) == 2, factor, 1.0)
            counts = generator.poisson(changed[:, np.newaxis] * generator.normal(1, 0.01, (len(means), runs)))
            arms.append(arm(name, {f"row {row}": (values * 1_000_000).tolist() for row, values in enumerate(counts)}))
        compared = compare_arms(arms[0], arms[1:], CompareOptions()).candidates[0]
        verdicts = {row.name: row.verdict for row in compared.rows}
        found += verdicts.pop("row 2") is Verdict.FASTER
        wrong += any(verdict in (Verdict.FASTER, Verdict.SLOWER) for verdict in verdicts.values())
    # -60 ms with a standard error of sqrt((300 + 240 + 15) / runs) ms: about 5.7 and 8 standard errors.
    assert found >= (36 if runs == 5 else 57)
    assert wrong / 60 <= stats.ALPHA + rate_error(stats.ALPHA, 60)


def test_sampling_variance_is_that_of_sampled_counts() -> None:
    """A fixed number of samples falls on rows by their shares: the mean estimate must match the variance of the counts."""
    generator = generator_of("sampling")
    shares = np.array([0.6, 0.3, 0.08, 0.02])
    counts = generator.multinomial(2000, shares, size=5000).T.astype(np.float64)
    estimated = sampling_variance(counts * 1e6, counts, np.full(counts.shape, 2000e6)).mean(axis=-1)
    np.testing.assert_allclose(estimated, (counts * 1e6).var(axis=-1), rtol=0.08)
