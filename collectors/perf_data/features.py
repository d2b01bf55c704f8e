"""Feature sections: facts about the host, the command, the events and the binaries of a recording."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from collectors.perf_data import spec
from profiler.errors import FormatError
from profiler.model.quick_dataclass import dataclass

USED_FEATURES = frozenset(
    {
        spec.HEADER_BUILD_ID,
        spec.HEADER_HOSTNAME,
        spec.HEADER_OSRELEASE,
        spec.HEADER_VERSION,
        spec.HEADER_ARCH,
        spec.HEADER_NRCPUS,
        spec.HEADER_CPUDESC,
        spec.HEADER_CMDLINE,
        spec.HEADER_EVENT_DESC,
    }
)
_BUILD_ID_RECORD = struct.Struct("<IHHi20sB3x")


@dataclass(frozen=True, slots=True)
class FeatureContent:
    """One feature as the recording has it; ``offset``: where it lies in the file."""

    data: bytes
    offset: int


@dataclass(frozen=True, slots=True)
class BuildIdEntry:
    """One row of the build-ID table; ``is_kernel`` for the kernel and its modules."""

    path: str
    build_id: bytes
    is_kernel: bool


@dataclass(frozen=True, slots=True)
class EventDescription:
    """An event's name as perf spelled it, with its sample ids."""

    name: str
    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Features:
    """Empty strings and tuples, and 0, where the recording says nothing."""

    hostname: str = ""
    osrelease: str = ""
    version: str = ""
    arch: str = ""
    cpudesc: str = ""
    nrcpus: int = 0
    cmdline: tuple[str, ...] = ()
    events: tuple[EventDescription, ...] = ()
    build_ids: tuple[BuildIdEntry, ...] = ()


class FeatureReader:
    """A cursor over one feature section; every length is checked against what is left."""

    def __init__(self, content: bytes, name: str, offset: int) -> None:
        self._content = content
        self._name = name
        self._offset = offset
        self._position = 0

    def take(self, length: int) -> bytes:
        if length > len(self._content) - self._position:
            message = f"{length} bytes expected in a feature section that has {len(self._content) - self._position} left"
            raise FormatError(self._name, message, self._offset + self._position)
        piece = self._content[self._position : self._position + length]
        self._position += length
        return piece

    def u32(self) -> int:
        return int.from_bytes(self.take(4), "little")

    def u64(self) -> int:
        return int.from_bytes(self.take(8), "little")

    def terminated(self) -> str:
        """Text up to the next NUL."""
        end = self._content.find(b"\0", self._position)
        length = end - self._position if end >= 0 else self.left + 1
        return self.take(length + 1)[:-1].decode("utf-8", "surrogateescape")

    def string(self) -> str:
        """``struct perf_header_string``: u32 length of the padded text, the text, NUL."""
        return self.take(self.u32()).split(b"\0", 1)[0].decode("utf-8", "surrogateescape")

    def strings(self) -> tuple[str, ...]:
        return tuple(self.string() for _ in range(self.count(4)))

    def count(self, smallest_item_bytes: int) -> int:
        """A u32 number of items that can still follow."""
        count = self.u32()
        left = len(self._content) - self._position
        if count * smallest_item_bytes > left:
            raise FormatError(self._name, f"{count} items expected in {left} bytes", self._offset + self._position - 4)
        return count

    @property
    def left(self) -> int:
        return len(self._content) - self._position


def parse_features(name: str, contents: Mapping[int, FeatureContent]) -> Features:
    """All features that slotscope uses; unknown ones are passed over.  ``name``: the file, for messages.

    An empty section says nothing: old perfs left one where they could not find something out, as the CPU's name on ARM.
    """

    def reader(bit: int) -> FeatureReader | None:
        content = contents.get(bit)
        return FeatureReader(content.data, name, content.offset) if content and content.data else None

    def text(bit: int) -> str:
        cursor = reader(bit)
        return cursor.string() if cursor else ""

    cmdline, events = reader(spec.HEADER_CMDLINE), reader(spec.HEADER_EVENT_DESC)
    cpus, build_ids = reader(spec.HEADER_NRCPUS), reader(spec.HEADER_BUILD_ID)
    return Features(
        hostname=text(spec.HEADER_HOSTNAME),
        osrelease=text(spec.HEADER_OSRELEASE),
        version=text(spec.HEADER_VERSION),
        arch=text(spec.HEADER_ARCH),
        cpudesc=text(spec.HEADER_CPUDESC),
        nrcpus=_online_cpus(cpus) if cpus else 0,
        cmdline=cmdline.strings() if cmdline else (),
        events=_event_descriptions(events) if events else (),
        build_ids=_build_ids(build_ids) if build_ids else (),
    )


def _online_cpus(cursor: FeatureReader) -> int:
    cursor.u32()  # available
    return cursor.u32()


def _event_descriptions(cursor: FeatureReader) -> tuple[EventDescription, ...]:
    count, attribute_bytes = cursor.count(8), cursor.u32()
    events = []
    for _ in range(count):
        cursor.take(attribute_bytes)
        id_count = cursor.u32()
        name = cursor.string()
        ids = cursor.take(id_count * 8)
        events.append(EventDescription(name, struct.unpack(f"<{id_count}Q", ids)))
    return tuple(events)


def _unpadded(build_id: bytes) -> bytes:
    """perf before 5.12 did not write how long an ID is; it filled up those that are not SHA-1 (MD5, UUIDs, short hashes) with
    zeros."""
    return next((build_id[:length] for length in (0, 8, 16) if not any(build_id[length:])), build_id)


def _build_ids(cursor: FeatureReader) -> tuple[BuildIdEntry, ...]:
    entries = []
    while cursor.left >= _BUILD_ID_RECORD.size:
        _, misc, size, _, build_id, id_bytes = _BUILD_ID_RECORD.unpack(cursor.take(_BUILD_ID_RECORD.size))
        path = cursor.take(max(0, size - _BUILD_ID_RECORD.size)).split(b"\0", 1)[0].decode("utf-8", "surrogateescape")
        has_length = misc & spec.PERF_RECORD_MISC_BUILD_ID_SIZE
        build_id = build_id[: min(id_bytes, 20)] if has_length else _unpadded(build_id)
        is_kernel = misc & spec.PERF_RECORD_MISC_CPUMODE_MASK in (1, 4)
        entries.append(BuildIdEntry(path, build_id, is_kernel))
    return tuple(entries)
