"""The aggregator's clock from exchanges whose true offset and delays the test has made."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from collectors.agent.connection.server_clock import measure_clock


@dataclass(slots=True)
class World:
    """True time, and what the clocks of both sides make of it.  ``delays``: (there, back) of each exchange, ns."""

    delays: list[tuple[int, int]]
    server_offset_ns: int
    wall_offset_ns: int
    now_ns: int = 10**12

    def monotonic(self) -> int:
        return self.now_ns

    def wall(self) -> int:
        return self.now_ns + self.wall_offset_ns

    def exchange(self) -> int:
        there, back = self.delays.pop(0)
        self.now_ns += there
        answer = self.now_ns + self.server_offset_ns
        self.now_ns += back
        return answer


def measured(world: World):  # type: ignore[no-untyped-def]
    return measure_clock(world.exchange, len(world.delays), world.monotonic, world.wall)


def test_the_quickest_exchange_counts() -> None:
    world = World([(9_000_000, 1_000_000), (400_000, 600_000), (50_000_000, 0)], 7 * 10**9, 0)
    clock = measured(world)
    assert clock.offset.error_ns == 500_000  # half of 1 ms
    assert clock.offset.offset_ns == 7 * 10**9 - 100_000  # 0.1 ms from the middle of an exchange of 0.4 + 0.6 ms


@given(
    st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)), min_size=1, max_size=9),
    st.integers(-(10**15), 10**15),
    st.integers(-(10**15), 10**15),
)
def test_the_truth_is_within_the_error(delays: list[tuple[int, int]], server: int, wall: int) -> None:
    clock = measured(World(list(delays), server, wall))
    assert abs(clock.offset.offset_ns - (server - wall)) <= clock.offset.error_ns
    assert clock.offset.error_ns <= (min(there + back for there, back in delays) + 1) // 2


def test_a_step_of_the_wall_clock_changes_nothing_of_what_was_measured() -> None:
    world = World([(1000, 1000)], server_offset_ns=3 * 10**9, wall_offset_ns=-8 * 10**9)
    clock = measured(world)
    start_at_ns = world.now_ns + world.server_offset_ns + 5 * 10**9  # five seconds from now by the server's clock
    before = clock.monotonic_of(start_at_ns)
    world.wall_offset_ns += 3600 * 10**9
    assert clock.monotonic_of(start_at_ns) == before == world.now_ns + 5 * 10**9
    assert clock.server_of(before) == start_at_ns
