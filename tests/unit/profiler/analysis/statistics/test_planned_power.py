"""Power against published sample sizes and scipy.stats.nct."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.integrate
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from profiler.analysis.statistics.expected_power import expected_power, limits_of
from profiler.analysis.statistics.power import MOST_RUNS, NoiseVariance, planned_effect, runs_needed, visible_effect

EXACTLY_KNOWN = 1e9


@pytest.mark.parametrize(("effect", "runs"), [(0.2, 199), (0.5, 34), (0.8, 15)])
def test_runs_of_a_paired_comparison_as_tabulated(effect: float, runs: int) -> None:
    """Matched pairs, two-sided 0.05, power 0.80: the sample sizes that G*Power lists for Cohen's three effect sizes."""
    assert runs_needed(np.array([effect]), NoiseVariance(np.array([1.0]), None), 1).tolist() == [runs]


@pytest.mark.parametrize(("effect", "runs"), [(0.2, 394), (0.5, 64), (0.8, 26)])
def test_runs_of_a_comparison_of_independent_arms_as_tabulated(effect: float, runs: int) -> None:
    """Cohen 1988, table 2.4.1: 393 (394 exactly), 64 and 26 per group at two-sided 0.05 and power 0.80."""
    noise = NoiseVariance(np.array([1.0]), np.array([1.0]))
    assert runs_needed(np.array([-effect]), noise, 1).tolist() == [runs]


def power_of(effect: float, seen: float, degrees: float, critical: float) -> float:
    """By scipy: the noncentral t distribution, averaged over the chi distribution of the spread that was seen."""

    def weighted(spread: float) -> float:
        density = scipy.stats.chi.pdf(spread * seen**0.5, seen) * seen**0.5
        return float(density * scipy.stats.nct.sf(critical, degrees, effect * spread))

    return float(scipy.integrate.quad(weighted, 0, 1 + 8 / seen**0.5, limit=200)[0])


def less_certain(degrees: float, runs: int, kurtosis: float) -> float:
    """Degrees of freedom of a chi-squared variable with the relative variance that Cramer gives for a variance of ``runs``
    values with this excess kurtosis, 2 / degrees + kurtosis / runs."""
    return 2 / (2 / degrees + kurtosis / runs)


@pytest.mark.parametrize(("degrees", "family"), [(2, 1), (3, 5), (4, 20), (9, 1), (29, 20)])
def test_the_visible_effect_is_seen_with_80_percent_probability(degrees: float, family: int) -> None:
    """The mean power over both spreads, by integration with scipy."""
    for noise, kurtosis in (
        (NoiseVariance(np.ones(1), None, 10), 1.0),
        (NoiseVariance(np.ones(1), np.ones(1), 10), 0.7),
        (NoiseVariance(np.ones(1), None, 0), None),
    ):
        effect = float(visible_effect(np.array([2.5]), np.array([float(degrees)]), noise, family)[0]) / 2.5
        critical = scipy.stats.t.ppf(1 - 0.05 / family / 2, degrees)
        seen = degrees if kurtosis is None else less_certain(degrees, 10, kurtosis)
        assert power_of(effect, seen, degrees, critical) == pytest.approx(0.8, abs=2e-3)


@pytest.mark.parametrize("seen", [2, 4, 30])
@pytest.mark.parametrize("runs", [4, 30])
def test_planned_effects_allow_for_the_runs_that_were_seen(seen: int, runs: int) -> None:
    noise = NoiseVariance(np.array([9.0, 4.0]), None, seen)
    found = planned_effect(noise, np.array([runs]), 5)[:, 0] * np.sqrt(runs) / [3.0, 2.0]
    assert found[0] == pytest.approx(found[1])
    critical = scipy.stats.t.ppf(1 - 0.01 / 2, runs - 1)
    certainty = max(less_certain(seen - 1, seen, 1.0), 1.0)
    assert power_of(float(found[0]), certainty, runs - 1, critical) == pytest.approx(0.8, abs=3e-3)


def test_power_grows_with_the_effect() -> None:
    critical = scipy.stats.t.ppf(1 - 0.05 / 3 / 2, 9)
    effects = np.array([0.0, 1.0, 2.0, 4.0, 8.0])
    power = expected_power(effects, np.full(5, EXACTLY_KNOWN), limits_of(np.full(5, 9.0), np.full(5, critical)))
    np.testing.assert_allclose(power, scipy.stats.nct.sf(critical, 9, effects), atol=1e-3)
    assert (np.diff(power) > 0).all()


@given(seed=st.integers(0, 2**32 - 1), family=st.integers(1, 20))
def test_one_run_less_than_needed_is_not_enough(seed: int, family: int) -> None:
    generator = np.random.default_rng(seed)
    effect, variance = generator.uniform(0.1, 3, 5), generator.uniform(0.5, 2, 5)
    needed = runs_needed(effect, NoiseVariance(variance, None), family)
    for runs, is_enough in ((needed, True), (needed - 1, False)):
        asked = (needed > 3) | is_enough
        degrees = runs - 1.0
        critical = scipy.stats.t.ppf(1 - 0.05 / family / 2, degrees)
        power = 1 - scipy.stats.nct.cdf(critical, degrees, effect / np.sqrt(variance / runs))
        assert ((power >= 0.8 - 1e-3) if is_enough else (power < 0.8 + 1e-3))[asked].all()


@pytest.mark.parametrize("degrees", [1.0, 2.0, 4.7, 50.0, 500.0, 1e5])
@pytest.mark.parametrize("seen", [1.0, 9.0, EXACTLY_KNOWN])
@pytest.mark.parametrize("family", [1, 20, 200])
def test_power_is_a_probability_that_never_falls(family: int, seen: float, degrees: float) -> None:
    effects = np.geomspace(0.1, 1e6, 400)
    critical = np.full(400, scipy.stats.t.ppf(1 - 0.05 / family / 2, degrees))
    power = expected_power(effects, np.full(400, seen), limits_of(np.full(400, degrees), critical))
    assert ((power >= 0) & (power <= 1 + 1e-12)).all()
    assert (np.diff(power) >= -1e-9).all()
    assert power[-1] > 0.99


def test_no_number_of_runs_shows_no_effect() -> None:
    noise = NoiseVariance(np.array([1.0, 1.0]), np.array([1.0, 1.0]))
    assert runs_needed(np.array([0.0, 1e-6]), noise, 1).tolist() == [0, 0]
    assert MOST_RUNS == 100_000


def test_at_least_as_many_runs_as_a_verdict_needs() -> None:
    assert runs_needed(np.array([1e6]), NoiseVariance(np.array([1.0]), None), 1).tolist() == [3]
