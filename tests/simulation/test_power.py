"""How often an effect is found: as often as ``visible_effect`` and ``experiment power`` promise, whether noise is normal,
heavy-tailed or skewed."""

from __future__ import annotations

import numpy as np
import pytest

from profiler.analysis.comparison.compare import CompareOptions, compare_arms
from profiler.analysis.statistics import t_tests
from profiler.analysis.statistics.power import POWER, NoiseVariance, planned_effect, promised_power, runs_needed, visible_effect
from profiler.analysis.statistics.spread import sampling_variance
from profiler.model.comparison import Verdict
from support.arms import arm
from support.noise import KINDS, Setting, Values, generator_of, rate_error, two_arms

TOLERANCE = 0.05
RUNS = (4, 5, 10, 30)
FEW_RUNS = (4, 10)

experiments_of = pytest.mark.parametrize(
    "experiments", [pytest.param(600, id="quick"), pytest.param(3000, id="full", marks=pytest.mark.full)]
)


def detection_rate(setting: Setting, effects: Values, is_paired: bool, generator: np.random.Generator) -> float:
    """Share of the experiments in which the one row that changed is flagged with the right sign, among rows that did not.
    ``effects``: one per experiment."""
    baseline, candidate = two_arms(setting, len(effects), generator)
    candidate[:, 0, :] -= effects[:, np.newaxis]
    test = (t_tests.paired_t if is_paired else t_tests.welch_t)(baseline, candidate)
    flagged = (t_tests.holm(test.p) < t_tests.ALPHA) & (test.difference < 0)
    return float(flagged[:, 0].mean())


def noise_of_pilots(setting: Setting, is_paired: bool, experiments: int, generator: np.random.Generator) -> NoiseVariance:
    """What experiments that were made say of the noise of one row, one entry per experiment."""
    baseline, candidate = (arm[:, 0, :] for arm in two_arms(setting, experiments, generator))
    if is_paired:
        return NoiseVariance((candidate - baseline).var(axis=-1, ddof=1), None, setting.runs)
    return NoiseVariance(baseline.var(axis=-1, ddof=1), candidate.var(axis=-1, ddof=1), setting.runs)


@experiments_of
@pytest.mark.parametrize("noise", KINDS)
@pytest.mark.parametrize("is_paired", [True, False], ids=["paired", "welch"])
@pytest.mark.parametrize("rows", [1, 5, 20])
def test_the_visible_effect_is_found_as_often_as_promised(rows: int, is_paired: bool, noise: str, experiments: int) -> None:
    """Every experiment is made again with the effect that it named."""
    rates = {}
    for runs in (3, *RUNS):
        generator = generator_of("promise", noise, runs, rows, is_paired)
        pilots = two_arms(Setting(noise, runs), experiments, generator)
        test = (t_tests.paired_t if is_paired else t_tests.welch_t)(*pilots)
        seen = NoiseVariance(np.ones(1), None if is_paired else np.ones(1), runs)
        effects = visible_effect(test.standard_error[:, 0], test.degrees[:, 0], seen, rows)
        rates[runs, runs] = detection_rate(Setting(noise, runs, rows), effects, is_paired, generator)
    hold_promise(
        rates,
        f"visible effect, {'paired' if is_paired else 'welch'}, {noise}, {rows} rows",
        (is_paired, noise == "normal"),
        experiments,
    )


@experiments_of
@pytest.mark.parametrize("noise", KINDS)
@pytest.mark.parametrize("is_paired", [True, False], ids=["paired", "welch"])
@pytest.mark.parametrize("rows", [1, 5, 20])
def test_what_an_experiment_says_of_the_next_one_holds(rows: int, is_paired: bool, noise: str, experiments: int) -> None:
    """An experiment is made, the effects that so many runs would show are asked for, and a second experiment with that many
    runs and that effect is made."""
    rates = {}
    asked = FEW_RUNS if experiments < 1000 else RUNS
    for seen in asked:
        generator = generator_of("plan", noise, is_paired, rows, seen)
        pilots = noise_of_pilots(Setting(noise, seen), is_paired, experiments, generator)
        effects = planned_effect(pilots, np.array(asked), rows)
        for column, runs in enumerate(asked):
            rates[seen, runs] = detection_rate(Setting(noise, runs, rows), effects[:, column], is_paired, generator)
    hold_promise(
        rates,
        f"next one, {'paired' if is_paired else 'welch'}, {noise}, {rows} rows",
        (is_paired, noise == "normal"),
        experiments,
    )


def hold_promise(rates: dict[tuple[int, int], float], what: str, kind: tuple[bool, bool], experiments: int) -> None:
    """``rates`` by runs seen and runs planned: within 5 points of what ``experiment power`` says for such noise.  ``kind``: is
    the test paired, is the noise normal."""
    found = {key: f"{100 * rate:.1f}" for key, rate in rates.items()}
    print(f"\n{what}: found in {100 * min(rates.values()):.1f} - {100 * max(rates.values()):.1f} %; {found}")
    off = max(abs(rate - promised_power(*kind)) for rate in rates.values())
    assert off <= TOLERANCE + rate_error(POWER, experiments)


@experiments_of
@pytest.mark.parametrize("is_paired", [True, False], ids=["paired", "welch"])
def test_runs_needed_find_the_effect(is_paired: bool, experiments: int) -> None:
    for effect in (0.5, 1.0, 2.0):
        noise = NoiseVariance(np.array([2.0]), None) if is_paired else NoiseVariance(np.array([1.0]), np.array([1.0]))
        runs = int(runs_needed(np.array([effect]), noise, 5)[0])
        generator = generator_of("needed", effect, is_paired)
        rate = detection_rate(Setting(runs=runs, rows=5), np.full(experiments, effect), is_paired, generator)
        print(f"\n{'paired' if is_paired else 'welch'}, effect {effect} sd: {runs} runs find it in {100 * rate:.1f} %")
        assert rate + rate_error(POWER, experiments) >= POWER - TOLERANCE
        assert rate <= POWER + 2 * TOLERANCE


@pytest.mark.parametrize("is_paired", [True, False], ids=["paired", "welch"])
@pytest.mark.parametrize("seen", RUNS)
def test_runs_needed_by_what_few_runs_showed_are_enough_on_average(seen: int, is_paired: bool) -> None:
    """Each of 200 experiments names its own number of runs for one effect; found in 75 % of the next experiments at least."""
    generator = generator_of("needed by pilots", seen, is_paired)
    pilots = noise_of_pilots(Setting(runs=seen), is_paired, 200, generator)
    needed = runs_needed(np.full(200, 1.5), pilots, 5)
    rates = [detection_rate(Setting(runs=int(runs), rows=5), np.full(20, 1.5), is_paired, generator) for runs in needed]
    print(f"\n{'paired' if is_paired else 'welch'}, {seen} runs seen: {needed.mean():.0f} needed, {100 * np.mean(rates):.1f} %")
    assert np.mean(rates) >= POWER - TOLERANCE


@pytest.mark.parametrize("noise", ["t3", "exponential"])
def test_power_does_not_vanish_for_other_noise(noise: str) -> None:
    for runs in (5, 10):
        generator = generator_of("other noise", noise, runs)
        assert detection_rate(Setting(noise, runs=runs, rows=5), np.full(1000, 4.0), True, generator) > 0.5


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
    assert wrong / 60 <= t_tests.ALPHA + rate_error(t_tests.ALPHA, 60)


def test_sampling_variance_is_that_of_sampled_counts() -> None:
    """A fixed number of samples falls on rows by their shares: the mean estimate must match the variance of the counts."""
    generator = generator_of("sampling")
    shares = np.array([0.6, 0.3, 0.08, 0.02])
    counts = generator.multinomial(2000, shares, size=5000).T.astype(np.float64)
    estimated = sampling_variance(counts * 1e6, counts * 1e12, np.full(5000, 2000e6)).mean(axis=-1)
    np.testing.assert_allclose(estimated, (counts * 1e6).var(axis=-1), rtol=0.08)
