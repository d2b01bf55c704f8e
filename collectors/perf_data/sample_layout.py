"""Where the fields of a sample, and of the trailer of other records, lie; decided by the event's attributes alone.

Source: the comment above ``PERF_RECORD_SAMPLE`` and ``struct sample_id`` in ``include/uapi/linux/perf_event.h``.
"""

from __future__ import annotations

from collections.abc import Sequence

from collectors.perf_data import spec
from collectors.perf_data.attributes import EventAttributes
from profiler.model.quick_dataclass import dataclass

# Fields of one word each that come first in a sample, in this order.
_FIXED_FIELDS = (
    spec.PERF_SAMPLE_IDENTIFIER,
    spec.PERF_SAMPLE_IP,
    spec.PERF_SAMPLE_TID,
    spec.PERF_SAMPLE_TIME,
    spec.PERF_SAMPLE_ADDR,
    spec.PERF_SAMPLE_ID,
    spec.PERF_SAMPLE_STREAM_ID,
    spec.PERF_SAMPLE_CPU,
    spec.PERF_SAMPLE_PERIOD,
)
_TRAILER_FIELDS = (
    spec.PERF_SAMPLE_TID,
    spec.PERF_SAMPLE_TIME,
    spec.PERF_SAMPLE_ID,
    spec.PERF_SAMPLE_STREAM_ID,
    spec.PERF_SAMPLE_CPU,
    spec.PERF_SAMPLE_IDENTIFIER,
)


@dataclass(frozen=True, slots=True)
class SampleLayout:
    """What decides the layout of a sample; events with equal layouts are decoded together."""

    sample_type: int
    read_format: int
    branch_sample_type: int
    user_registers: int
    interrupt_registers: int

    def has(self, field: int) -> bool:
        return bool(self.sample_type & field)

    def word_of(self, field: int) -> int:
        """Index of a one-word field, counted in words from the record's header; -1 when it was not recorded."""
        if not self.has(field):
            return -1
        before = _FIXED_FIELDS[: _FIXED_FIELDS.index(field)]
        return 1 + sum(self.has(other) for other in before)

    @property
    def fixed_words(self) -> int:
        """Words before the first field of variable size, header included."""
        return 1 + sum(self.has(field) for field in _FIXED_FIELDS)

    @property
    def id_word(self) -> int:
        """Index of the word that names the event, -1 when there is none."""
        identifier = self.word_of(spec.PERF_SAMPLE_IDENTIFIER)
        return identifier if identifier >= 0 else self.word_of(spec.PERF_SAMPLE_ID)


def sample_layout(attributes: EventAttributes) -> SampleLayout:
    return SampleLayout(
        attributes.sample_type,
        attributes.read_format,
        attributes.branch_sample_type,
        attributes.user_registers,
        attributes.interrupt_registers,
    )


@dataclass(frozen=True, slots=True)
class TrailerLayout:
    """``struct sample_id`` behind every record that is not a sample: its size, and where in it the time stamp is (-1 none)."""

    size_bytes: int
    time_at: int


def trailer_layout(attributes: EventAttributes) -> TrailerLayout:
    if not attributes.is_sample_id_all:
        return TrailerLayout(0, -1)
    fields = [field for field in _TRAILER_FIELDS if attributes.sample_type & field]
    has_time = spec.PERF_SAMPLE_TIME in fields
    return TrailerLayout(8 * len(fields), 8 * fields.index(spec.PERF_SAMPLE_TIME) if has_time else -1)


@dataclass(frozen=True, slots=True)
class Trailers:
    """The trailer of a record by the event it belongs to.

    ``by_id`` is used only when events differ; the id is then the word ``id_from_end`` before the record's end.
    """

    default: TrailerLayout
    by_id: dict[int, TrailerLayout]
    id_from_end: int = 1

    @property
    def has_time(self) -> bool:
        """Whether any record says when it was written."""
        return any(layout.time_at >= 0 for layout in (self.default, *self.by_id.values()))


def trailers(attributes: Sequence[EventAttributes]) -> Trailers:
    """Trailers of all events.  When they place the id differently, those of the first event are taken for all, as by perf."""
    layouts = [trailer_layout(event) for event in attributes]
    places = {_id_from_end(event) for event in attributes}
    if len(set(layouts)) == 1 or len(places) > 1 or 0 in places:
        return Trailers(layouts[0], {})
    by_id = {number: layout for event, layout in zip(attributes, layouts, strict=True) for number in event.ids}
    return Trailers(layouts[0], by_id, places.pop())


def _id_from_end(attributes: EventAttributes) -> int:
    """How many words before the end of a trailer the event's id is; 0 when it has none."""
    if not attributes.is_sample_id_all:
        return 0
    if attributes.sample_type & spec.PERF_SAMPLE_IDENTIFIER:
        return 1
    if not attributes.sample_type & spec.PERF_SAMPLE_ID:
        return 0
    behind = (spec.PERF_SAMPLE_STREAM_ID, spec.PERF_SAMPLE_CPU)
    return 1 + sum(bool(attributes.sample_type & field) for field in behind)
