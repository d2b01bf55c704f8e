"""Events, weights, counters and order of small recordings written by hand."""

from __future__ import annotations

import struct

import pytest

from profiler.errors import FormatError
from profiler.model.run import RunMode
from support import perf_data_writer as writer
from support.ingested_recordings import USER, ingested, program, stack_of
from support.perf_data_writer import EventSpec, RecordingWriter, Sample


def test_samples_without_any_address_keep_their_weight() -> None:
    content = program(EventSpec(sample_type=writer.IDENTIFIER | writer.TID | writer.TIME | writer.PERIOD))
    content.sample(Sample(time=2, period=77))
    capture = ingested(content)
    assert stack_of(capture, 0) == [("[unknown]", 0, False)]
    assert capture.samples.weight.tolist() == [77]


def test_samples_are_ordered_by_time_then_position() -> None:
    content = program()
    for time, ip in ((30, 1), (10, 2), (20, 3), (10, 4)):
        content.sample(Sample(ip=0x400000 + ip, time=time, chain=(USER, 0x400000 + ip)))
    capture = ingested(content)
    assert [stack_of(capture, row)[0][1] - 0x2000 for row in range(4)] == [2, 4, 3, 1]
    assert capture.samples.time_ns.tolist() == [10, 10, 20, 30]


def test_without_times_the_order_is_that_of_the_file() -> None:
    content = RecordingWriter([EventSpec(sample_type=writer.IP | writer.TID | writer.PERIOD)])
    content.comm(10, 10, b"first")
    content.mmap2(10, 0x400000, 0x1000, 0, b"/bin/a")
    content.sample(Sample(ip=0x400001))
    content.sample(Sample(ip=0x400002))
    capture = ingested(content)
    assert [stack_of(capture, row)[0] for row in range(2)] == [("a", 1, False), ("a", 2, False)]
    assert capture.samples.time_ns.tolist() == [0, 0]


@pytest.mark.parametrize(("described", "traced"), [(0, 0), (0, 2), (1, 0), (1, 2)])
def test_traces_of_the_processor_are_named_once(described: int, traced: int) -> None:
    content = program()
    for _ in range(described):
        content.record(70, 0, writer.words(1, 0, 0))
    for _ in range(traced):
        content.record(71, 0, writer.words(24, 0, 0, 0, 0))
        content.records.append(bytes(24))
    content.sample(Sample(chain=(USER, 0x400010)))
    capture = ingested(content)
    assert len(capture.samples) == 1
    assert sum("Intel PT" in note for note in capture.quality.notes) == bool(described or traced)


def test_events_units_and_weights() -> None:
    content = program(
        EventSpec(is_frequency=True, period=997),
        EventSpec(config=2, sample_type=writer.USUAL & ~writer.PERIOD, period=250),
        EventSpec(type=0, sample_type=writer.USUAL & ~writer.PERIOD, period=4000, is_frequency=True),
    )
    content.sample(Sample(time=2, period=1003009, chain=(USER, 0x400010)))
    content.sample(Sample(time=3, chain=(USER, 0x400010)), event=1)
    content.sample(Sample(time=4, chain=(USER, 0x400010)), event=2)
    content.sample(Sample(time=5, sample_id=424242))
    capture = ingested(content)
    assert [(e.name, e.unit, e.frequency_hz, e.period) for e in capture.events] == [
        ("cpu-clock", "ns", 997, 0),
        ("page-faults", "page-faults", 0, 250),
        ("cycles", "cycles", 4000, 0),
    ]
    assert capture.samples.event.tolist() == [0, 1, 2]
    assert capture.samples.weight.tolist() == [1003009, 250, 1]
    assert "1 samples belong to no event of the recording and were left out" in capture.quality.notes
    assert "cycles: samples carry no period; each counts the same" in capture.quality.notes


def test_without_times_names_and_mappings_change_where_the_file_says_so() -> None:
    content = RecordingWriter([EventSpec(sample_type=writer.IP | writer.TID | writer.PERIOD)])
    content.comm(10, 10, b"first")
    content.mmap2(10, 0x400000, 0x1000, 0, b"/bin/a")
    content.sample(Sample(ip=0x400001))
    content.comm(10, 10, b"second", is_exec=True)
    content.mmap2(10, 0x400000, 0x1000, 0, b"/bin/b")
    content.sample(Sample(ip=0x400001))
    content.mmap2(10, 0x400000, 0x1000, 0, b"/bin/c")
    content.sample(Sample(ip=0x400001))
    capture = ingested(content)
    assert [stack_of(capture, row)[0][0] for row in range(3)] == ["a", "b", "c"]
    names = [capture.strings[capture.threads.thread_name[row]] for row in capture.samples.thread.tolist()]
    assert names == ["first", "second", "second"]


@pytest.mark.parametrize(
    ("kind", "config", "name", "unit"),
    [
        (1, 0, "cpu-clock/freq=1999/", "ns"),
        (1, 1, "renamed", "ns"),
        (1, 2, "page-faults/period=7/u", "page-faults/period=7/"),
        (0, 0, "cycles:ppp", "cycles"),
        (0, 3, "task-clock-like", "task-clock-like"),
        (2, 77, "sched:sched_switch", "sched:sched_switch"),
    ],
)
def test_only_clocks_count_time_whatever_they_are_called(kind: int, config: int, name: str, unit: str) -> None:
    content = program(EventSpec(type=kind, config=config))
    described = struct.pack("<II", 1, 8) + bytes(8) + struct.pack("<I", 2) + writer.feature_string(name)
    content.features = {12: described + writer.words(*content.ids(0))}
    content.sample(Sample())
    (event,) = ingested(content).events
    assert (event.name, event.unit) == (name, unit)


@pytest.mark.parametrize(
    ("events", "name"),
    [
        (((1, 2), (1, 0)), "cpu-clock"),
        (((1, 1), (1, 0)), "cpu-clock"),
        (((0, 0), (1, 1)), "task-clock"),
        (((1, 9), (0, 1), (1, 2)), "instructions"),
        (((0, 1), (0, 0)), "cycles"),
        (((1, 9),), "dummy"),
    ],
)
def test_the_settings_are_those_of_the_event_that_is_shown(events: tuple[tuple[int, int], ...], name: str) -> None:
    content = program(*(EventSpec(type=kind, config=config, period=100 + config) for kind, config in events))
    content.sample(Sample())
    settings = ingested(content).info.perf
    assert settings.event == name
    assert settings.period == 100 + next(config for kind, config in events if opened_name(kind, config) == name)


def opened_name(kind: int, config: int) -> str:
    return {0: ("cycles", "instructions"), 1: ("cpu-clock", "task-clock", "page-faults", *[""] * 6, "dummy")}[kind][config]


def test_group_samples_stand_for_what_each_counter_gained() -> None:
    group = EventSpec(sample_type=writer.USUAL | writer.READ, read_format=4 | 8 | 16, is_inherited=False)
    content = program(
        group, EventSpec(config=2, sample_type=group.sample_type, read_format=group.read_format, is_inherited=False)
    )
    clock, faults = content.ids(0)[0], content.ids(1)[0]
    for time, (ns, count) in enumerate(((1000, 5), (2500, 5), (4000, 9)), 2):
        content.sample(Sample(time=time, period=1, chain=(USER, 0x400010), read=(2, ns, clock, 0, count, faults, 0)))
    capture = ingested(content)
    rows = list(zip(capture.samples.event.tolist(), capture.samples.weight.tolist(), strict=True))
    assert rows == [(0, 1000), (1, 5), (0, 1500), (0, 1500), (1, 4)]


def test_counters_go_on_through_samples_that_do_not_count() -> None:
    """What the launcher's process did before the exec is not the program's."""
    group = EventSpec(sample_type=writer.USUAL | writer.READ, read_format=4 | 8, is_inherited=False)
    content = RecordingWriter([group])
    content.comm(10, 10, b"program", time=5, is_exec=True)
    clock = content.ids(0)[0]
    for time, ns in ((3, 1000), (4, 1500), (6, 1700), (7, 2000)):
        content.sample(Sample(time=time, chain=(USER, 0x400010), read=(2, ns, clock, 7 * time, 424242)))
    capture = ingested(content, RunMode.PROFILED)
    assert capture.samples.weight.tolist() == [200, 300]
    assert capture.samples.event.tolist() == [0, 0]
    assert "4 samples belong to no event of the recording and were left out" in capture.quality.notes


@pytest.mark.parametrize("periods", [(5, 2**63), (5, 2**64 - 1), (2**61, 2**61 + 2**20)])
def test_periods_that_cannot_be_are_refused_with_their_place(periods: tuple[int, int]) -> None:
    content = program()
    for time, period in enumerate(periods):
        content.sample(Sample(time=time, period=period, chain=(USER, 0x400010)))
    place = content.build().index(content.records[-1])
    with pytest.raises(FormatError, match=f"test.data: byte {place}: the period of this sample is too large"):
        ingested(content)


@pytest.mark.parametrize(
    ("periods", "note"),
    [
        ([1000] * 200, ""),
        ([1000] * 200 + [60_000], "cpu-clock: one of 201 samples holds 23% of the weight; its period may be wrong"),
        ([1, 1, 5, 36, 89, 586, 3326, 15566, 97316, 410302, 714311, 717905], ""),
        ([1000] * 20 + [1 << 50], "cpu-clock: one of 21 samples holds 100% of the weight; its period may be wrong"),
        ([0] * 20, ""),
        ([1, 1 << 40], ""),
    ],
)
def test_a_period_beyond_reason_is_told(periods: list[int], note: str) -> None:
    content = program()
    for time, period in enumerate(periods):
        content.sample(Sample(time=time, period=period))
    capture = ingested(content)
    assert capture.samples.weight.tolist() == periods
    assert [line for line in capture.quality.notes if "weight" in line] == ([note] if note else [])
