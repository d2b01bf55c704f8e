"""Drift over windows and processes that stand apart, on values written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from profiler.analysis.quality.window_warnings import window_warnings
from profiler.model.costs import ArmCosts
from profiler.model.run import RunMode
from support.arms import Place, arm, infos, with_times

MS = 1_000_000
# Sum zero, and orthogonal to the order of six windows.
WOBBLE = (0.05, -0.08, 0.03, -0.03, 0.08, -0.05)


def watched(of_nodes: Sequence[Sequence[float]], windows: Sequence[range] = ()) -> ArmCosts:
    """``of_nodes``: ms per window of nodes n0, n1, ...; ``windows``: the numbers of each node's, else from 0 on."""
    runs, values = [], []
    for node, of_windows in enumerate(of_nodes):
        rounds = windows[node] if windows else range(len(of_windows))
        for info in infos("a", len(of_windows), Place(mode=RunMode.PLAIN, rounds=rounds)):
            runs.append(replace(info, identity=replace(info.identity, instance=f"n{node}")))
        values += [value * MS for value in of_windows]
    # No wall time, as watched processes have none.
    return arm("a", {}, infos=(), plain=with_times(runs, [0] * len(runs), slot=values))


def rising(level: float) -> list[float]:
    """By 0.2 % of 10 ms a window."""
    return [level + 0.02 * number + 0.02 * WOBBLE[number] for number in range(6)]


def test_drift_is_that_of_all_processes_together() -> None:
    """5 x 0.02 ms of a mean of 15.05 ms are 0.66 %, too little; of 8.05 ms they are 1.24 %."""
    (found,) = window_warnings(watched([rising(6.0), rising(10.0)]))
    assert found.code == "order-drift"
    assert found.message.startswith("a: slot drifted by +1.2 % from the first window to the last")
    assert window_warnings(watched([rising(10.0), rising(20.0)])) == []


def test_processes_that_drift_apart_are_no_drift() -> None:
    falling = [20.0 - value for value in rising(10.0)]
    assert window_warnings(watched([rising(10.0), falling])) == []


def test_levels_of_processes_in_turn_are_no_drift() -> None:
    """As in a crossover: a fast node in the first three windows, a slow one in the last three."""
    assert window_warnings(watched([[5.0, 5.1, 4.9], [50.0, 51.0, 49.0]], [range(3), range(3, 6)])) == []


def test_a_process_that_stands_apart_is_named() -> None:
    """Median 10, distances 0.1, 0, 0.1, 0.2, 3: MAD 0.1, score 0.6745 x 30 = 20; the limit for 5 is 3.5 x 3 = 10.5."""
    means = (9.9, 10.0, 10.1, 9.8, 13.0)
    (found,) = window_warnings(watched([[mean, mean] for mean in means]))
    assert found.code == "outliers"
    assert "slot of n4 (+30.0 %) stands apart" in found.message
    assert window_warnings(watched([[mean] for mean in means[:4]])) == []
