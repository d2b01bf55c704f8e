"""Which event a sample belongs to, on recordings written by hand."""

from __future__ import annotations

import io

import pytest

from collectors.perf_data.reader import Recording, open_recording
from profiler.errors import FormatError
from support import perf_data_writer as writer
from support.perf_data_writer import EventSpec, RecordingWriter, Sample

PLAIN = writer.IP | writer.TID | writer.ID


def opened(content: RecordingWriter) -> Recording:
    return open_recording(io.BytesIO(content.build()), "test.data")


def events_by_ip(content: RecordingWriter) -> dict[int, int]:
    recording = opened(content)
    found = {}
    for chunk in recording.chunks(recording.index()):
        found |= dict(zip(chunk.fields.ip.tolist(), chunk.event.tolist(), strict=True))
    return found


def test_samples_belong_to_the_event_whose_id_they_carry() -> None:
    content = RecordingWriter([EventSpec(), EventSpec(sample_type=writer.USUAL | writer.ADDR)])
    content.sample(Sample(ip=1), event=1)
    content.sample(Sample(ip=2), event=0)
    content.sample(Sample(ip=3, sample_id=content.ids(1)[1]), event=1)
    content.sample(Sample(ip=4, sample_id=9999), event=0)
    assert events_by_ip(content) == {1: 1, 2: 0, 3: 1, 4: -1}


def test_the_identifier_is_first_whatever_else_was_recorded() -> None:
    content = RecordingWriter([EventSpec(sample_type=writer.IDENTIFIER | PLAIN), EventSpec(sample_type=writer.USUAL)])
    content.sample(Sample(ip=1), event=1)
    content.sample(Sample(ip=2), event=0)
    assert events_by_ip(content) == {1: 1, 2: 0}


def test_ids_at_different_places_are_looked_for_at_each() -> None:
    """perf refuses such files; the ids still tell the samples apart."""
    content = RecordingWriter([EventSpec(sample_type=PLAIN), EventSpec(sample_type=PLAIN | writer.TIME)])
    content.sample(Sample(ip=1), event=0)
    content.sample(Sample(ip=2, time=777), event=1)
    content.sample(Sample(ip=3, sample_id=9999), event=0)
    assert events_by_ip(content) == {1: 0, 2: 1, 3: -1}


def test_a_sample_that_fits_two_events_belongs_to_none() -> None:
    content = RecordingWriter([EventSpec(sample_type=PLAIN), EventSpec(sample_type=PLAIN | writer.TIME)])
    content.sample(Sample(ip=1, time=content.ids(0)[0]), event=1)
    assert events_by_ip(content) == {1: -1}


def test_old_kernels_give_id_0_to_the_first_event() -> None:
    content = RecordingWriter([EventSpec(), EventSpec()])
    content.sample(Sample(ip=1, sample_id=0), event=1)
    assert events_by_ip(content) == {1: 0}


def test_several_events_without_ids_cannot_be_told_apart() -> None:
    content = RecordingWriter([EventSpec(sample_type=writer.IP), EventSpec(sample_type=writer.IP, config=2)])
    content.sample(Sample())
    with pytest.raises(FormatError, match=r"test\.data: holds several events, but samples of cpu-clock carry no event id"):
        events_by_ip(content)


def test_one_event_needs_no_id() -> None:
    content = RecordingWriter([EventSpec(sample_type=writer.IP)])
    content.sample(Sample(ip=5))
    assert events_by_ip(content) == {5: 0}


@pytest.mark.parametrize("kind", [writer.ID | writer.CPU, writer.ID | writer.STREAM_ID | writer.CPU, writer.IDENTIFIER])
def test_side_band_records_end_as_their_own_event_says(kind: int) -> None:
    """Two events place the id alike but record the time or not; the comm belongs to the second."""
    content = RecordingWriter(
        [EventSpec(sample_type=writer.TID | kind), EventSpec(sample_type=writer.TID | writer.TIME | kind)]
    )
    trailer = {writer.ID: content.ids(1)[0], writer.STREAM_ID: 1, writer.CPU: 3, writer.IDENTIFIER: content.ids(1)[0]}
    trailing = writer.words(10 << 32 | 10, 4321, *(value for bit, value in trailer.items() if kind & bit))
    content.record(3, 0, writer.words(10 << 32 | 10) + writer.text(b"worker") + trailing)
    (comm,) = opened(content).index().side_band.comms
    assert (comm.time_ns, comm.name, comm.tid) == (4321, "worker", 10)
