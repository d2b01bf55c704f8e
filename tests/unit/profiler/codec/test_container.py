"""Versions, wrong indices and hostile content that the checksums cannot catch: whoever writes them writes checksums too."""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from profiler.codec.container import decode, encode
from profiler.errors import FormatError
from support.sample_captures import run_info, two_stack_capture

CAPTURE = two_stack_capture(run_info("20260301-100000-abcd", "base"))
DATA = encode(CAPTURE)


def digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=32).digest()


def rewritten(version: int = 3, head: dict[str, Any] | bytes | None = None, body: bytes | None = None) -> bytes:
    """The container taken apart and put together by the description in docs/formats.md, with correct checksums."""
    (head_bytes,) = struct.unpack_from("<Q", DATA, 16)
    old_head = DATA[32 : 32 + head_bytes]
    text = old_head if head is None else head if isinstance(head, bytes) else json.dumps(head).encode()
    sections = DATA[32 + head_bytes + 32 : -32] if body is None else body
    total = 32 + len(text) + 32 + len(sections) + 32
    front = b"\x89SLCAP\r\n" + struct.pack("<IIQQ", version, 0, len(text), total) + text
    everything = front + digest(front) + sections
    return everything + digest(everything)


def head_of(data: bytes) -> dict[str, Any]:
    (head_bytes,) = struct.unpack_from("<Q", data, 16)
    head: dict[str, Any] = json.loads(data[32 : 32 + head_bytes])
    return head


def test_layout_is_the_documented_one() -> None:
    assert rewritten() == DATA
    assert head_of(DATA)["info"]["identity"] == {
        "session": "20260301-100000-abcd",
        "variant": "base",
        "round": 0,
        "mode": "profiled",
        "position": 0,
        "condition": "",
        "instance": "",
        "is_whole_run": False,
    }


def test_sections_are_arrow_streams_that_others_can_read() -> None:
    import pyarrow as pa

    head = head_of(DATA)
    position, tables = 32 + struct.unpack_from("<Q", DATA, 16)[0] + 32, {}
    for name, rows in head["tables"]:
        (length,) = struct.unpack_from("<Q", DATA, position)
        tables[name] = pa.ipc.open_stream(DATA[position + 8 : position + 8 + length]).read_all()
        assert tables[name].num_rows == rows
        position += 8 + length
    assert position == len(DATA) - 32
    assert tables["samples"]["weight"].to_pylist() == [1000, 1000, 1000]
    assert tables["frames"]["offset"].to_pylist() == [0x1040, 0x1139, 2**64 - 1]
    assert tables["dsos"]["build_id"].to_pylist() == [b"\x01\x02", b""]


def test_columns_cannot_be_written_to() -> None:
    capture = decode(DATA, "x")
    with pytest.raises(ValueError, match="read-only"):
        capture.samples.weight[0] = 1


def test_newer_version_is_named_with_ours() -> None:
    with pytest.raises(FormatError, match=r"a\.capture: byte 8: format version 4, but .* up to 3"):
        decode(rewritten(version=4), "a.capture")


@pytest.mark.parametrize("version", [1, 2])
def test_older_version_is_read_as_it_was(version: int) -> None:
    head = head_of(DATA)
    del head["info"]["identity"]["is_whole_run"]
    assert encode(decode(rewritten(version=version, head=head), "x")) == DATA


def test_version_without_a_way_up_is_refused() -> None:
    with pytest.raises(FormatError, match="format version 0 is too old"):
        decode(rewritten(version=0), "x")


def test_field_unknown_to_this_version_is_refused() -> None:
    head = head_of(DATA)
    head["info"]["colour"] = "red"
    with pytest.raises(FormatError, match=r"head\.info: unknown field 'colour'"):
        decode(rewritten(head=head), "x")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("info", "identity", "round"), "0"),
        (("info", "identity", "round"), True),
        (("info", "identity", "mode"), "sideways"),
        (("info", "command"), "ls"),
        (("info", "host"), None),
        (("quality", "skipped_records"), [[1, 2, 3]]),
        (("events",), [{"name": "cpu-clock"}]),
        (("tables",), [["strings", 3]]),
        (("tables",), None),
        (("tables",), [["samples", 2**70]] * 6),
    ],
)
def test_wrong_types_in_the_head_are_refused(path: tuple[str, ...], value: object) -> None:
    head = head_of(DATA)
    target = head
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    with pytest.raises(FormatError, match=r"^x: "):
        decode(rewritten(head=head), "x")


@pytest.mark.parametrize("head", [b"", b"[]", b"{", b"\xff\xfe", b"[" * 100_000, b"1" * 10_000, b'{"a": NaN}'])
def test_heads_that_are_not_ours_are_refused(head: bytes) -> None:
    with pytest.raises(FormatError):
        decode(rewritten(head=head), "x")


@pytest.mark.parametrize(
    ("table", "column", "values"),
    [
        ("frames", "dso", np.array([0, 0, 2], np.int32)),
        ("frames", "symbol", np.array([-2, -1, 2], np.int32)),
        ("frames", "mode", np.array([0, 0, 9], np.uint8)),
        ("stacks", "prefix", np.array([-1, 1, 1], np.int32)),
        ("stacks", "prefix", np.array([-2, 0, 1], np.int32)),
        ("stacks", "frame", np.array([0, 1, 3], np.int32)),
        ("threads", "thread_name", np.array([3], np.int32)),
        ("samples", "thread", np.array([0, 0, 1], np.int32)),
        ("samples", "event", np.array([0, 0, 1], np.int16)),
        ("samples", "stack", np.array([0, 0, 3], np.int32)),
        ("samples", "state", np.array([0, 0, 5], np.uint8)),
    ],
)
def test_index_that_leads_nowhere_is_refused(table: str, column: str, values: np.ndarray) -> None:
    wrong = replace(CAPTURE, **{table: replace(getattr(CAPTURE, table), **{column: values})})
    with pytest.raises(FormatError, match=f"{table}.{column}|forward"):
        decode(encode(wrong), "x")


def test_column_of_another_type_is_a_programming_error() -> None:
    wrong = replace(CAPTURE, samples=replace(CAPTURE.samples, weight=np.ones(3, np.int32)))
    with pytest.raises(TypeError, match=r"samples\.weight: expected int64"):
        encode(wrong)


def test_table_with_other_columns_is_refused() -> None:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    batch = pa.record_batch([pa.array([1, 2, 3])], names=["x"])
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    section = sink.getvalue().to_pybytes()
    body = (struct.pack("<Q", len(section)) + section) * 6
    with pytest.raises(FormatError, match="other columns"):
        decode(rewritten(body=body), "x")


def test_more_rows_announced_than_there_are() -> None:
    head = head_of(DATA)
    head["tables"][5][1] = 2**40
    with pytest.raises(FormatError, match="does not have the"):
        decode(rewritten(head=head), "x")


@pytest.mark.parametrize("seed", range(150))
def test_damaged_tables_under_correct_checksums_never_crash(seed: int) -> None:
    generator = np.random.default_rng(seed)
    (head_bytes,) = struct.unpack_from("<Q", DATA, 16)
    body = np.frombuffer(DATA[32 + head_bytes + 32 : -32], np.uint8).copy()
    places = generator.integers(0, len(body), int(generator.integers(1, 6)))
    body[places] = generator.integers(0, 256, len(places))
    try:
        capture = decode(rewritten(body=body.tobytes()), "x")
    except FormatError as error:
        message, rows = str(error), 3
    else:  # what was hit is a value, and every index still leads somewhere
        message, rows = "x: ", len(capture.samples)
        assert (capture.stacks.prefix < np.arange(3)).all()
    assert message.startswith("x: ")
    assert rows == 3


def test_every_field_of_the_head_is_documented() -> None:
    text = (Path(__file__).parents[4] / "docs" / "formats.md").read_text()

    def names(value: object) -> set[str]:
        if isinstance(value, dict):
            return set(value) | {name for item in value.values() for name in names(item)}
        return {name for item in value for name in names(item)} if isinstance(value, list) else set()

    missing = sorted(name for name in names(head_of(DATA)) if f"`{name}`" not in text)
    assert not missing
