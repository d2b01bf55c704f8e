"""The capture container: one file per run, bytes in and out.

``frame`` (see ``framing``) around a JSON head (run information, quality, events, row counts) and one Arrow table per column
table of the capture.  docs/formats.md describes it for readers in other languages.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Mapping, Sequence

from profiler.codec.capture_tables import SHAPES, CaptureTables, columns_of
from profiler.codec.column_tables import BINARY, Columns, TableShape, read_table, write_table
from profiler.codec.decoded_size import decoded_bytes
from profiler.codec.framing import Preamble, frame, read_head, read_preamble, read_sections
from profiler.codec.json_values import Json, JsonShapeError, from_json, to_json
from profiler.codec.upgrades import CURRENT_VERSION, UPGRADES, StoredCapture, check_version, upgrade
from profiler.errors import FormatError
from profiler.model.capture import Capture
from profiler.model.event import Event
from profiler.model.quality import CaptureQuality
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import CaptureInfo


@dataclass(frozen=True, slots=True)
class _Head:
    """``tables``: (name, rows) of each section, in file order."""

    info: CaptureInfo
    quality: CaptureQuality
    events: tuple[Event, ...]
    tables: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class DecodeLimits:
    """What decoding a container from somebody unknown may take.  ``head_bytes``: of its JSON.  ``table_bytes``: of all tables
    when they are decompressed.  ``named_rows``: of each table with texts, whose rows become objects one by one."""

    head_bytes: int
    table_bytes: int
    named_rows: int


def encode(capture: Capture) -> bytes:
    """The capture as a container of the current version; equal captures give equal bytes."""
    tables = columns_of(capture)
    rows = tuple((shape.name, len(tables[shape.name][shape.columns[0][0]])) for shape in SHAPES)
    head = to_json(_Head(capture.info, capture.quality, capture.events, rows))
    text = json.dumps(head, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return frame(CURRENT_VERSION, text, [write_table(shape, tables[shape.name]) for shape in SHAPES])


def decode(data: bytes | memoryview | mmap.mmap, name: str, limits: DecodeLimits | None = None) -> Capture:
    """The capture that ``data``, a whole container, holds; ``name`` stands in messages.

    ``FormatError``: not a container, written by a newer version, truncated, damaged, with an index that leads nowhere, or
    beyond ``limits``, which is found out before the memory is used.
    """
    view, preamble, head = _open(data, name, limits)
    sections = read_sections(view, preamble, name)
    shapes = SHAPES if preamble.version == CURRENT_VERSION else UPGRADES[preamble.version].shapes
    if limits is not None:
        _check_limits(limits, shapes, head, sections, name)
    tables = _read_tables(shapes, head, sections, name)
    stored = upgrade(StoredCapture(head, tables), preamble.version, CURRENT_VERSION, UPGRADES)
    values = _values(stored.head, name)
    checked = CaptureTables(stored.tables, len(values.events), name)
    return Capture(
        info=values.info,
        quality=values.quality,
        strings=checked.strings,
        dsos=checked.dsos,
        frames=checked.frames,
        stacks=checked.stacks,
        threads=checked.threads,
        samples=checked.samples,
        events=values.events,
    )


def _open(
    data: bytes | memoryview | mmap.mmap, name: str, limits: DecodeLimits | None
) -> tuple[memoryview, Preamble, Mapping[str, Json]]:
    view = memoryview(data)
    preamble = read_preamble(view, name)
    check_version(preamble.version, name)
    if limits is not None and preamble.head_bytes > limits.head_bytes:
        raise FormatError(name, f"head of {preamble.head_bytes} bytes, but at most {limits.head_bytes} are taken", 16)
    raw = bytes(read_head(view, preamble, name))
    try:
        head = json.loads(raw.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise FormatError(name, f"head is not JSON ({type(error).__name__}): damaged") from None
    if not isinstance(head, dict):
        raise FormatError(name, "head is not a JSON object: damaged")
    return view, preamble, head


def _check_limits(
    limits: DecodeLimits, shapes: Sequence[TableShape], head: Mapping[str, Json], sections: Sequence[memoryview], name: str
) -> None:
    total = sum(decoded_bytes(section, name) for section in sections)
    if total > limits.table_bytes:
        raise FormatError(name, f"tables of {total} bytes when decompressed, but at most {limits.table_bytes} are taken")
    named = {shape.name for shape in shapes if any(kind == BINARY for _, kind in shape.columns)}
    for table, rows in _announced(head, name):
        if table in named and rows > limits.named_rows:
            raise FormatError(name, f"table {table!r} has {rows} rows, but at most {limits.named_rows} are taken")


def _announced(head: Mapping[str, Json], name: str) -> tuple[tuple[str, int], ...]:
    """(name, rows) of each table, as the head says."""
    try:
        return from_json(_Tables, {"tables": head.get("tables")}, "head").tables
    except JsonShapeError as error:
        raise FormatError(name, f"{error}: damaged") from None


def _values(head: Mapping[str, Json], name: str) -> _Head:
    try:
        return from_json(_Head, head, "head")
    except JsonShapeError as error:
        raise FormatError(name, f"{error}: damaged, or written by another slotscope of the same format version") from None


def _read_tables(
    shapes: Sequence[TableShape], head: Mapping[str, Json], sections: Sequence[memoryview], name: str
) -> dict[str, Columns]:
    expected = [shape.name for shape in shapes]
    announced = _announced(head, name)
    if [table for table, _ in announced] != expected or len(sections) != len(expected):
        raise FormatError(name, f"{len(sections)} tables, expected {', '.join(expected)}")
    rows = [count for _, count in announced]
    return {
        shape.name: read_table(shape, section, count, name)
        for shape, section, count in zip(shapes, sections, rows, strict=True)
    }


@dataclass(frozen=True, slots=True)
class _Tables:
    tables: tuple[tuple[str, int], ...]
