"""Error rates and coverage of every design and derived comparison, with noise of several kinds.

Nothing changed in any of them: pairs, arms recorded apart, processes watched side by side or under both builds, differences of
differences, and composed pairs.  Rates are printed (``pytest -s``) and held against their promise within three standard errors
of the simulation.
"""

from __future__ import annotations

import numpy as np
import pytest

from profiler.analysis.statistics import t_tests
from support.designs import DESIGNS, HOST_SPREAD, WINDOWS, by_process, watched
from support.noise import KINDS, Setting, generator_of, rate_error

RUNS = (4, 5, 10, 30)
ROWS = (1, 5, 20)
DRIFTS = {"steady": 0.0, "drift": 2.0}
# Recorded apart, arms share no blocks: what drifts is noise to them, and intervals are far too wide.
BLIND_TO_DRIFT = ("welch", "control apart", "composed apart")
LEAST, MOST = 0.94, 0.975

experiments_of = pytest.mark.parametrize(
    "experiments", [pytest.param(300, id="quick"), pytest.param(2000, id="full", marks=pytest.mark.full)]
)


@experiments_of
@pytest.mark.parametrize("drift", DRIFTS)
@pytest.mark.parametrize("noise", KINDS)
@pytest.mark.parametrize("design", DESIGNS)
def test_what_did_not_change_is_seldom_flagged_and_lies_in_the_interval(
    design: str, noise: str, drift: str, experiments: int
) -> None:
    errors: dict[tuple[int, int], float] = {}
    coverage: dict[tuple[int, int], float] = {}
    for runs in RUNS:
        for rows in ROWS:
            setting = Setting(noise, runs, rows, drift=DRIFTS[drift])
            test = DESIGNS[design](setting, experiments, generator_of("designs", design, setting))
            errors[runs, rows] = float((t_tests.holm(test.p) < t_tests.ALPHA).any(axis=-1).mean())
            # Of one row, for rows of a run may move together and then do not add to the evidence.
            coverage[runs, rows] = float(((test.low <= 0) & (test.high >= 0))[:, 0].mean())
    print(f"\n{design}, {noise}, {drift}: flagged {_span(errors)}, held {_span(coverage)}")
    assert max(errors.values()) <= t_tests.ALPHA + rate_error(t_tests.ALPHA, experiments)
    assert min(coverage.values()) >= LEAST - rate_error(LEAST, experiments)
    if noise == "normal" and not (drift == "drift" and design in BLIND_TO_DRIFT):
        assert max(coverage.values()) <= MOST + rate_error(MOST, experiments)


@experiments_of
@pytest.mark.parametrize("runs", RUNS)
def test_windows_as_replicates_would_fail(runs: int, experiments: int) -> None:
    """The same numbers, once by process and once with every window as a run of its own."""
    setting = Setting(runs=runs)
    generator = generator_of("windows of processes", runs)
    levels = [HOST_SPREAD * generator.standard_normal((experiments, 1, runs)) for _ in range(2)]
    arms = [watched(setting, level, generator) for level in levels]
    processes = t_tests.welch_t(*(by_process(arm) for arm in arms))
    windows = t_tests.welch_t(*(arm.reshape(experiments, 1, runs * WINDOWS) for arm in arms))
    by_processes, by_windows = (float((test.p < t_tests.ALPHA).mean()) for test in (processes, windows))
    print(f"\n{runs} + {runs} processes with {WINDOWS} windows: {by_processes:.3f} by process, {by_windows:.3f} by window")
    assert by_processes <= t_tests.ALPHA + rate_error(t_tests.ALPHA, experiments)
    assert by_windows > 0.3


@experiments_of
def test_intervals_of_unequal_and_skewed_noise_are_printed(experiments: int) -> None:
    """No promise is made for them; they must not collapse."""
    held: dict[tuple[str, str, float], float] = {}
    for design in ("welch", "control apart", "composed apart"):
        for noise in KINDS:
            for spread in (1.0, 4.0):
                for runs in RUNS:
                    setting = Setting(noise, runs, candidate_spread=spread)
                    test = DESIGNS[design](setting, experiments, generator_of("unequal", design, setting))
                    share = float(((test.low <= 0) & (test.high >= 0)).mean())
                    held[design, noise, spread] = min(share, held.get((design, noise, spread), 1.0))
    for (design, noise, spread), share in held.items():
        print(f"\n{design}, {noise}, candidate with {spread:g} x the spread: held {100 * share:.1f} % at least")
    assert min(held.values()) > 0.8


def _span(rates: dict[tuple[int, int], float]) -> str:
    values = np.array(list(rates.values()))
    return f"{100 * values.min():.1f} - {100 * values.max():.1f} %"
