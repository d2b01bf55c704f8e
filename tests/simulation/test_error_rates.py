"""How often nothing is called something: simulated comparisons of arms that do not differ.

The functions are those of the product, on [experiments, rows, runs] at once.  Rates are printed (``pytest -s``); they must not
exceed 5 % by more than three standard errors of the simulation.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from profiler.analysis.comparison.compare import CompareOptions, compare_arms
from profiler.analysis.statistics import t_tests
from profiler.analysis.statistics.permutation import sign_flip_p, two_sample_p
from profiler.analysis.statistics.spread import outliers
from profiler.model.comparison import Verdict
from support.arms import Place, arm
from support.noise import KINDS, Setting, Values, generator_of, rate_error, two_arms

RUNS = (3, 5, 10, 30)
ROWS = (1, 2, 5, 10, 20)
TESTS = {"paired": t_tests.paired_t, "welch": t_tests.welch_t}

experiments_of = pytest.mark.parametrize(
    "experiments", [pytest.param(1000, id="quick"), pytest.param(20_000, id="full", marks=pytest.mark.full)]
)


def family_wise_error(test: Callable[[Values, Values], t_tests.TTest], setting: Setting, experiments: int) -> float:
    """Share of the experiments in which at least one row is flagged."""
    baseline, candidate = two_arms(setting, experiments, generator_of(test.__name__, setting))
    flagged = t_tests.holm(test(baseline, candidate).p) < t_tests.ALPHA
    return float(flagged.any(axis=-1).mean())


@experiments_of
@pytest.mark.parametrize("noise", KINDS)
@pytest.mark.parametrize("name", TESTS)
def test_family_wise_error(name: str, noise: str, experiments: int) -> None:
    rates = {
        (runs, rows): family_wise_error(TESTS[name], Setting(noise, runs, rows), experiments) for runs in RUNS for rows in ROWS
    }
    print_table(f"{name}, {noise} noise, {experiments} experiments", rates)
    assert max(rates.values()) <= t_tests.ALPHA + rate_error(t_tests.ALPHA, experiments)


@experiments_of
@pytest.mark.parametrize("name", TESTS)
def test_drift_that_both_arms_share(name: str, experiments: int) -> None:
    """Welch's test does not see the blocks: drift only widens its intervals."""
    rates = {
        (runs, rows): family_wise_error(TESTS[name], Setting(runs=runs, rows=rows, drift=2.0), experiments)
        for runs in RUNS
        for rows in ROWS
    }
    print_table(f"{name}, normal noise and drift, {experiments} experiments", rates)
    assert max(rates.values()) <= t_tests.ALPHA + rate_error(t_tests.ALPHA, experiments)


@experiments_of
@pytest.mark.parametrize("name", TESTS)
def test_rows_that_move_together(name: str, experiments: int) -> None:
    rates = {
        (runs, rows): family_wise_error(TESTS[name], Setting(runs=runs, rows=rows, common=2.0), experiments)
        for runs in RUNS
        for rows in ROWS
    }
    print_table(f"{name}, rows with a common part, {experiments} experiments", rates)
    assert max(rates.values()) <= t_tests.ALPHA + rate_error(t_tests.ALPHA, experiments)


@experiments_of
def test_arms_whose_noise_differs(experiments: int) -> None:
    """The limit of Welch's test: a candidate four times as noisy, few runs, many rows.  Stated in docs/statistics.md."""
    rates = {
        (runs, rows): family_wise_error(t_tests.welch_t, Setting(runs=runs, rows=rows, candidate_spread=4.0), experiments)
        for runs in RUNS
        for rows in ROWS
    }
    print_table(f"welch, candidate with 4 x the spread, {experiments} experiments", rates)
    assert max(rate for (_, rows), rate in rates.items() if rows == 1) <= 0.06 + rate_error(0.06, experiments)
    assert max(rate for (runs, _), rate in rates.items() if runs >= 10) <= 0.06 + rate_error(0.06, experiments)
    assert max(rates.values()) <= 0.09 + rate_error(0.09, experiments)


@experiments_of
def test_windows_of_a_process_are_not_replicates(experiments: int) -> None:
    """4 + 4 processes with 30 windows each, every process with its own luck: why runs are averaged before they are tested."""
    generator = generator_of("windows")
    shape = min(experiments, 4000), 1, 4
    arms = [100 + generator.standard_normal(shape)[..., np.newaxis] + generator.standard_normal((*shape, 30)) for _ in range(2)]
    runs = t_tests.welch_t(arms[0].mean(axis=-1), arms[1].mean(axis=-1))
    windows = t_tests.welch_t(*(values.reshape(shape[0], 1, 120) for values in arms))
    by_runs, by_windows = (float((test.p < t_tests.ALPHA).mean()) for test in (runs, windows))
    print(f"\n4 + 4 processes with 30 windows: {by_runs:.3f} by runs, {by_windows:.3f} by windows")
    assert by_runs <= t_tests.ALPHA + rate_error(t_tests.ALPHA, shape[0])
    assert by_windows > 0.5


@pytest.mark.parametrize("is_paired", [True, False])
def test_permutation_p_of_arms_that_do_not_differ(is_paired: bool) -> None:
    """Exact: at most 5 % below 0.05, whatever the noise."""
    baseline, candidate = two_arms(Setting("exponential", runs=7), 1000, generator_of("permutation", is_paired))
    first, second = baseline[:, 0, :], candidate[:, 0, :]
    p = sign_flip_p(second - first, 1) if is_paired else two_sample_p(first, second, 1)
    assert p is not None
    assert float((p < t_tests.ALPHA).mean()) <= t_tests.ALPHA + rate_error(t_tests.ALPHA, 1000)


def test_clean_series_rarely_have_outliers() -> None:
    rates = {
        runs: float(outliers(generator_of("outliers", runs).normal(100, 1, (20_000, runs))).any(axis=-1).mean())
        for runs in (5, 6, 7, 8, 10, 12, 15, 20, 30)
    }
    print("\nclean series with an outlier:", {runs: round(rate, 4) for runs, rate in rates.items()})
    assert max(rates.values()) <= 0.035


@pytest.mark.parametrize("experiments", [pytest.param(100, id="quick"), pytest.param(4000, id="full", marks=pytest.mark.full)])
@pytest.mark.parametrize("session", ["s1", "s2"], ids=["paired", "welch"])
def test_whole_comparisons_of_arms_that_do_not_differ(session: str, experiments: int) -> None:
    """Through ``compare_arms``: sampled categories with their own noise, a run's common factor, and a remainder."""
    generator = generator_of("whole", session)
    wrong = wrong_total = 0
    for _ in range(experiments):
        baseline, candidate = (
            arm(name, sampled_rows(generator), Place(session=where)) for name, where in (("a", "s1"), ("b", session))
        )
        compared = compare_arms(baseline, [candidate], CompareOptions()).candidates[0]
        assert compared.family == len(compared.rows) == 7
        wrong += any(row.verdict in (Verdict.FASTER, Verdict.SLOWER) for row in compared.rows)
        wrong_total += compared.total.verdict in (Verdict.FASTER, Verdict.SLOWER)
    print(f"\nwhole comparisons, {session}: {wrong / experiments:.4f} rows, {wrong_total / experiments:.4f} total")
    for rate in (wrong / experiments, wrong_total / experiments):
        assert rate <= t_tests.ALPHA + rate_error(t_tests.ALPHA, experiments)


def sampled_rows(generator: np.random.Generator, runs: int = 6) -> dict[str, list[int]]:
    """About 2,000 samples of 1 ms per run: Poisson counts around means with a run-to-run spread of 1 %."""
    means = np.array([900, 500, 300, 150, 80, 30, 6, 5, 4], dtype=np.float64)
    factors = generator.normal(1, 0.01, (1, runs)) * generator.normal(1, 0.01, (len(means), runs))
    counts = generator.poisson(means[:, np.newaxis] * factors)
    return {f"category {row}": (values * 1_000_000).tolist() for row, values in enumerate(counts)}


def print_table(title: str, rates: dict[tuple[int, int], float]) -> None:
    runs = sorted({run for run, _ in rates})
    rows = sorted({row for _, row in rates})
    print(f"\n{title}: runs per arm down, rows across {rows}")
    for run in runs:
        print(f"{run:4d}", "  ".join(f"{100 * rates[run, row]:.2f} %" for row in rows))
