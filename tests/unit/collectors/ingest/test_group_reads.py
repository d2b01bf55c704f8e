"""Counters that are read in samples: what each gained, against a plain loop."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from collectors.ingest.group_reads import CounterGains, CounterReadings
from collectors.perf_data.attributes import EventAttributes, parse_attributes
from support.perf_data_writer import EventSpec


def attributes(is_inherited: bool, ids: tuple[int, ...]) -> EventAttributes:
    return parse_attributes(EventSpec(is_inherited=is_inherited).encoded(), ids, "test.data", 0)


EVENTS = (attributes(False, (5, 6)), attributes(True, (9,)))
Reading = tuple[int, int, int]  # counter, thread, value


def by_hand(readings: list[Reading]) -> list[tuple[int, int, int]]:
    """(sample, event, gain): one reading a sample."""
    latest: dict[tuple[int, int], int] = {}
    found = []
    for row, (counter, thread, value) in enumerate(readings):
        event = {5: 0, 6: 0, 9: 1}.get(counter, -1)
        key = (counter, thread if event == 1 else -1)
        if value > latest.get(key, 0):
            found.append((row, event, value - latest.get(key, 0)))
        latest[key] = value
    return found


@given(
    st.lists(st.tuples(st.sampled_from([5, 6, 9, 77]), st.integers(1, 3), st.integers(0, 2**62)), max_size=40),
    st.integers(0, 40),
)
def test_gains_are_those_of_a_plain_loop(readings: list[Reading], split: int) -> None:
    gains, found = CounterGains(EVENTS), []
    for start, part in ((0, readings[:split]), (split, readings[split:])):
        columns = np.array(part, np.uint64).reshape(-1, 3)
        rows = CounterReadings(np.arange(len(part)), columns[:, 0], columns[:, 2])
        result = gains.gains(rows, columns[:, 1])
        found += [
            (start + sample, event, gain)
            for sample, event, gain in zip(result.sample.tolist(), result.event.tolist(), result.gain.tolist(), strict=True)
        ]
    assert found == by_hand(readings)


def test_gains_of_chosen_samples_and_known_events() -> None:
    counters, values = np.array([5, 9, 5, 77, 9], np.uint64), np.array([1, 2, 3, 4, 5], np.uint64)
    readings = CounterReadings(np.array([0, 0, 1, 2, 2]), counters, values)
    gains = CounterGains(EVENTS).gains(readings, np.array([1, 1, 1], np.uint64))
    chosen = gains.of_samples(np.array([False, True, True]))
    assert list(zip(chosen.sample.tolist(), chosen.event.tolist(), chosen.gain.tolist(), strict=True)) == [(0, 0, 2), (1, 1, 3)]


def test_events_without_ids_gain_nothing_that_is_known() -> None:
    readings = CounterReadings(np.array([0]), np.array([5], np.uint64), np.array([7], np.uint64))
    gains = CounterGains([attributes(False, ())]).gains(readings, np.array([1], np.uint64))
    assert gains.event.tolist() == [-1]
