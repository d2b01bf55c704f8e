"""Simulated experiments of every design, [experiments, rows, replicates], with what the product's tests make of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from profiler.analysis.comparison.compare_replicates import replicate_means
from profiler.analysis.statistics import t_tests
from profiler.analysis.statistics.contrast import Term, contrast
from profiler.analysis.statistics.log_ratio import log_ratio, product_test
from support.noise import Setting, Values, two_arms

WINDOWS = 8
# Standard deviations of what a process or host keeps for itself, over that of a window's noise.
HOST_SPREAD = 3.0


Simulate = Callable[[Setting, int, np.random.Generator], t_tests.TTest]


def paired(setting: Setting, experiments: int, generator: np.random.Generator) -> t_tests.TTest:
    """Runs of common rounds."""
    return t_tests.paired_t(*two_arms(setting, experiments, generator))


def welch(setting: Setting, experiments: int, generator: np.random.Generator) -> t_tests.TTest:
    """Arms recorded apart."""
    return t_tests.welch_t(*two_arms(setting, experiments, generator))


def parallel(setting: Setting, experiments: int, generator: np.random.Generator) -> t_tests.TTest:
    """Different processes per arm, each with luck of its own that all its windows share."""
    arms = [watched(setting, _hosts(setting, experiments, generator), generator) for _ in range(2)]
    return t_tests.welch_t(*(by_process(windows) for windows in arms))


def crossover(setting: Setting, experiments: int, generator: np.random.Generator) -> t_tests.TTest:
    """Every process runs both builds."""
    hosts = _hosts(setting, experiments, generator)
    return t_tests.paired_t(*(by_process(watched(setting, hosts, generator)) for _ in range(2)))


def control_of_common_rounds(setting: Setting, experiments: int, generator: np.random.Generator) -> t_tests.TTest:
    """A gain of 3 under the condition and of 3 under the control; all four arms run in every round."""
    treated, held = _four_arms(setting, experiments, generator)
    return t_tests.paired_t(held[1] - held[0], treated[1] - treated[0])


def control_apart(setting: Setting, experiments: int, generator: np.random.Generator) -> t_tests.TTest:
    """The same with four independent arms."""
    treated, held = _four_arms(setting, experiments, generator)
    return contrast([Term(treated[0], -1.0), Term(treated[1], 1.0), Term(held[0], 1.0), Term(held[1], -1.0)])


def composed_of_pairs(setting: Setting, experiments: int, generator: np.random.Generator) -> t_tests.TTest:
    """0.8 in one place, 1.25 in the other: the product is 1."""
    return _composed(setting, experiments, generator, is_paired=True)


def composed_apart(setting: Setting, experiments: int, generator: np.random.Generator) -> t_tests.TTest:
    return _composed(setting, experiments, generator, is_paired=False)


DESIGNS: Mapping[str, Simulate] = {
    "paired": paired,
    "welch": welch,
    "parallel": parallel,
    "crossover": crossover,
    "control": control_of_common_rounds,
    "control apart": control_apart,
    "composed": composed_of_pairs,
    "composed apart": composed_apart,
}


def watched(setting: Setting, hosts: Values, generator: np.random.Generator) -> Values:
    """[experiments, rows, processes, windows]: the process's own level, noise of every window, and a drift over the windows
    that all processes share."""
    shape = (*hosts.shape[:2], hosts.shape[2] * WINDOWS)
    noise = two_arms(replace(setting, runs=shape[2], drift=0.0), shape[0], generator)[0]
    drift = setting.drift * (np.arange(WINDOWS) - (WINDOWS - 1) / 2)
    return noise.reshape(*hosts.shape, WINDOWS) + hosts[..., np.newaxis] + drift


def by_process(windows: Values) -> Values:
    """Replicates as the product makes them: a process is one, whatever the number of its windows."""
    flat = windows.reshape(*windows.shape[:2], -1)
    processes, count = windows.shape[2:]
    return replicate_means(flat, [range(process * count, (process + 1) * count) for process in range(processes)])


def _hosts(setting: Setting, experiments: int, generator: np.random.Generator) -> Values:
    shared, own = (generator.standard_normal((experiments, rows, setting.runs)) for rows in (1, setting.rows))
    return HOST_SPREAD * (shared + own)


def _four_arms(
    setting: Setting, experiments: int, generator: np.random.Generator
) -> tuple[tuple[Values, Values], tuple[Values, Values]]:
    treated, held = (two_arms(setting, experiments, generator) for _ in range(2))
    return (treated[0], treated[1] - 3.0), (held[0] - 40.0, held[1] - 43.0)


def _composed(setting: Setting, experiments: int, generator: np.random.Generator, is_paired: bool) -> t_tests.TTest:
    legs = [two_arms(setting, experiments, generator) for _ in range(2)]
    factors = 0.8, 1.25
    ratios = [log_ratio(base, cand * factor, is_paired) for (base, cand), factor in zip(legs, factors, strict=True)]
    return product_test(ratios[0], ratios[1])
