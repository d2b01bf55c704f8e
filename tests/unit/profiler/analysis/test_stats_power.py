"""Power against published sample sizes and scipy.stats.nct."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from profiler.analysis.stats_power import MOST_RUNS, NoiseVariance, mean_of_deviation, power_of, runs_needed, visible_effect


@pytest.mark.parametrize(("effect", "runs"), [(0.2, 199), (0.5, 34), (0.8, 15)])
def test_runs_of_a_paired_comparison_as_tabulated(effect: float, runs: int) -> None:
    """Matched pairs, two-sided 0.05, power 0.80: the sample sizes that G*Power lists for Cohen's three effect sizes."""
    assert runs_needed(np.array([effect]), NoiseVariance(np.array([1.0]), None), 1).tolist() == [runs]


@pytest.mark.parametrize(("effect", "runs"), [(0.2, 394), (0.5, 64), (0.8, 26)])
def test_runs_of_a_comparison_of_independent_arms_as_tabulated(effect: float, runs: int) -> None:
    """Cohen 1988, table 2.4.1: 393 (394 exactly), 64 and 26 per group at two-sided 0.05 and power 0.80."""
    noise = NoiseVariance(np.array([1.0]), np.array([1.0]))
    assert runs_needed(np.array([-effect]), noise, 1).tolist() == [runs]


@given(degrees=st.floats(2, 100), family=st.integers(1, 40), error=st.floats(1e-6, 1e12))
def test_the_visible_effect_is_seen_with_80_percent_probability(degrees: float, family: int, error: float) -> None:
    effect = float(visible_effect(np.array([error]), np.array([degrees]), family)[0])
    critical = scipy.stats.t.ppf(1 - 0.05 / family / 2, degrees)
    shift = effect / error * float(mean_of_deviation(np.array([degrees]))[0])
    assert 1 - scipy.stats.nct.cdf(critical, degrees, shift) == pytest.approx(0.8, abs=1e-4)


def test_mean_of_deviation_as_tabulated() -> None:
    """c4 for samples of 2, 3, 5, 10 and 25, from the tables of control chart constants."""
    degrees = np.array([1.0, 2.0, 4.0, 9.0, 24.0])
    assert mean_of_deviation(degrees).tolist() == pytest.approx([0.7979, 0.8862, 0.9400, 0.9727, 0.9896], abs=5e-5)


def test_power_grows_with_the_effect() -> None:
    power = power_of(np.array([0.0, 1.0, 2.0, 4.0, 8.0]), np.full(5, 9.0), 3)
    assert float(power[0]) == pytest.approx(0.05 / 3 / 2, rel=1e-9)  # one tail of the family's level
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
        assert ((power >= 0.8 - 1e-9) == is_enough)[asked].all()


@pytest.mark.parametrize("degrees", [1.0, 2.0, 4.7, 50.0, 500.0, 1e5])
@pytest.mark.parametrize("family", [1, 20, 200])
def test_power_is_a_probability_that_never_falls(degrees: float, family: int) -> None:
    """Also where the distribution function of the library gives up: 50 degrees of freedom, 40 standard errors."""
    effects = np.geomspace(0.1, 1e6, 400)
    power = power_of(effects, np.full(400, degrees), family)
    assert ((power >= 0) & (power <= 1)).all()
    assert (np.diff(power) >= -1e-9).all()
    assert power[-1] > 0.99


def test_no_number_of_runs_shows_no_effect() -> None:
    noise = NoiseVariance(np.array([1.0, 1.0]), np.array([1.0, 1.0]))
    assert runs_needed(np.array([0.0, 1e-6]), noise, 1).tolist() == [0, 0]
    assert MOST_RUNS == 100_000


def test_at_least_as_many_runs_as_a_verdict_needs() -> None:
    assert runs_needed(np.array([1e6]), NoiseVariance(np.array([1.0]), None), 1).tolist() == [3]
