"""The order of runs: complete, shuffled within rounds, equal for equal seeds, and without favour."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from profiler.experiment.plan.recording_plan import ProfilePolicy
from profiler.experiment.plan.schedule import ScheduledRun, make_schedule
from profiler.model.run import RunMode

MODES = {
    ProfilePolicy.SEPARATE: [RunMode.PLAIN, RunMode.PROFILED],
    ProfilePolicy.SAME: [RunMode.PROFILED],
    ProfilePolicy.NONE: [RunMode.PLAIN],
}


@given(
    arms=st.integers(1, 5),
    rounds=st.integers(1, 6),
    warmups=st.integers(0, 3),
    profile=st.sampled_from(ProfilePolicy),
    seed=st.integers(0, 2**63 - 1),
)
def test_every_round_has_every_arm_once_in_every_mode(
    arms: int, rounds: int, warmups: int, profile: ProfilePolicy, seed: int
) -> None:
    schedule = make_schedule(arms, rounds, warmups, profile, seed)
    assert schedule == make_schedule(arms, rounds, warmups, profile, seed)
    expected = Counter((arm, mode) for arm in range(arms) for mode in MODES[profile])
    for number, runs in enumerate(schedule.rounds):
        assert Counter((run.arm, run.mode) for run in runs) == expected
        assert {run.round for run in runs} == {number}
        # All plain runs before all profiled ones.
        assert [run.mode for run in runs] == [mode for mode in MODES[profile] for _ in range(arms)]
    assert [run.position for runs in schedule.rounds for run in runs] == list(range(rounds * arms * len(MODES[profile])))
    assert schedule.warmups == tuple(ScheduledRun(arm, RunMode.PLAIN, -1, -1) for _ in range(warmups) for arm in range(arms))
    assert len(schedule) == arms * (warmups + rounds * len(MODES[profile]))


def test_no_arm_is_favoured_by_its_place_in_the_plan() -> None:
    """Over 3,000 rounds each of three arms is first in 1,000 +- 130 (5 standard deviations of the binomial)."""
    schedule = make_schedule(3, 3000, 0, ProfilePolicy.NONE, seed=1)
    for place in range(3):
        counts = Counter(runs[place].arm for runs in schedule.rounds)
        assert all(abs(counts[arm] - 1000) < 130 for arm in range(3))


def test_other_seeds_give_other_orders() -> None:
    orders = {
        tuple(run.arm for runs in make_schedule(3, 8, 0, ProfilePolicy.SAME, seed).rounds for run in runs) for seed in range(20)
    }
    assert len(orders) == 20
