"""Seeded noise for simulated experiments, shaped [experiments, rows, runs] as the statistics take it."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]

KINDS = ("normal", "t3", "exponential")


@dataclass(frozen=True, slots=True)
class Setting:
    """``noise``: one of ``KINDS``, each of unit variance.  ``drift``: size of a slow change that both arms of a block share (a
    straight line over the runs plus a wobble), in standard deviations of the noise; ``common``: of a run's part that all its
    rows share.  ``candidate_spread``: standard deviation of the candidate's noise over the baseline's."""

    noise: str = "normal"
    runs: int = 5
    rows: int = 1
    drift: float = 0.0
    common: float = 0.0
    candidate_spread: float = 1.0


def generator_of(*seed: object) -> np.random.Generator:
    """Depends on the words alone, so that a setting has the same numbers in every run of the tests."""
    return np.random.default_rng(list(" ".join(str(part) for part in seed).encode()))


def two_arms(setting: Setting, experiments: int, generator: np.random.Generator) -> tuple[Values, Values]:
    """Baseline and candidate around one mean of 100: nothing changed."""
    shape = experiments, setting.rows, setting.runs
    block = _drift(setting, experiments, generator)
    baseline, candidate = (
        100.0 + block + scale * (_unit_noise(setting.noise, shape, generator) + _common(setting, shape, generator))
        for scale in (1.0, setting.candidate_spread)
    )
    return baseline, candidate


def rate_error(rate: float, experiments: int) -> float:
    """Three standard errors of a simulated rate."""
    return 3 * sqrt(rate * (1 - rate) / experiments)


def _unit_noise(kind: str, shape: tuple[int, ...], generator: np.random.Generator) -> Values:
    if kind == "normal":
        return generator.standard_normal(shape)
    if kind == "t3":
        return generator.standard_t(3, shape) / sqrt(3)
    assert kind == "exponential"
    return generator.exponential(size=shape) - 1.0


def _drift(setting: Setting, experiments: int, generator: np.random.Generator) -> Values:
    order = np.arange(setting.runs) - (setting.runs - 1) / 2
    wobble = generator.standard_normal((experiments, 1, setting.runs))
    return setting.drift * (order + wobble)


def _common(setting: Setting, shape: tuple[int, ...], generator: np.random.Generator) -> Values:
    return setting.common * generator.standard_normal((shape[0], 1, shape[2]))
