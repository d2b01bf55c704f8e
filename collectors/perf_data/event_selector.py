"""Which event a sample belongs to: by the id in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from collectors.perf_data.attributes import EventAttributes
from collectors.perf_data.sample_layout import SampleLayout, sample_layout
from profiler.errors import FormatError
from profiler.model.arrays import Int16Column, Int64Column, UInt64Column
from profiler.model.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _IdPlace:
    """Events whose samples hold the id in word ``word``: ``ids`` ascending, ``rows`` the event of each."""

    word: int
    ids: UInt64Column
    rows: Int16Column

    def events(self, words: UInt64Column, starts: Int64Column) -> Int16Column:
        """The event of each sample, if it is one of these; -1 otherwise."""
        if not len(self.ids):
            return np.full(len(starts), -1, np.int16)
        sizes = (words[starts] >> np.uint64(51)).astype(np.int64)
        inside = sizes > self.word
        ids = np.where(inside, words[np.where(inside, starts + self.word, 0)], np.uint64(0))
        found = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return np.where(self.ids[found] == ids, self.rows[found], np.int16(-1))


class EventSelector:
    """The events of one recording.

    perf gives all of them an id at one place (PERF_SAMPLE_IDENTIFIER, or the same fields before PERF_SAMPLE_ID).  Where
    they differ, a sample belongs to an event whose id it holds at that event's place, and to none when that fits several.
    """

    def __init__(self, attributes: Sequence[EventAttributes], name: str) -> None:
        """``FormatError`` for several events whose samples carry no id: they cannot be told apart."""
        self._layouts = [sample_layout(event) for event in attributes]
        self._places: list[_IdPlace] = []
        if len(attributes) == 1:
            return
        id_words = [layout.id_word for layout in self._layouts]
        if min(id_words) < 0:
            event = attributes[id_words.index(min(id_words))].name
            message = f"holds several events, but samples of {event} carry no event id, so they cannot be told apart"
            raise FormatError(name, message)
        for word in sorted(set(id_words)):
            owner = {number: row for row, event in enumerate(attributes) if id_words[row] == word for number in event.ids}
            if len(set(id_words)) == 1:
                # Old kernels wrote id 0 into samples of the first event.
                owner.setdefault(0, 0)
            ids = sorted(owner)
            rows = np.array([owner[number] for number in ids], np.int16)
            self._places.append(_IdPlace(word, np.array(ids, np.uint64), rows))

    def events(self, words: UInt64Column, starts: Int64Column) -> Int16Column:
        """Row of the event of each sample; -1 when its id is unknown or fits events of different places."""
        if not self._places:
            return np.zeros(len(starts), np.int16)
        found = [place.events(words, starts) for place in self._places]
        if len(found) == 1:
            return found[0]
        candidates = np.stack(found)
        is_certain = (candidates >= 0).sum(axis=0) == 1
        return np.where(is_certain, candidates.max(axis=0), np.int16(-1)).astype(np.int16)

    def rows_by_layout(self, event: Int16Column) -> Iterator[tuple[SampleLayout, Int64Column | None]]:
        """Samples grouped by layout; ``None`` = all of them.  Samples of unknown events count as of the first event."""
        distinct = list(dict.fromkeys(self._layouts))
        if len(distinct) == 1:
            yield distinct[0], None
            return
        number = np.array([distinct.index(layout) for layout in self._layouts])[np.maximum(event, 0)]
        for row, layout in enumerate(distinct):
            rows = np.flatnonzero(number == row)
            if len(rows):
                yield layout, rows
