"""The size that a stream would have when it is decoded, held against what Arrow itself makes of it."""

from __future__ import annotations

import struct

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from profiler.codec.container import DecodeLimits, decode, encode
from profiler.codec.decoded_size import decoded_bytes
from profiler.errors import FormatError
from profiler.model.stack_table import stack_depths
from support.sample_captures import run_info, two_stack_capture

V4, V5 = pa.ipc.MetadataVersion.V4, pa.ipc.MetadataVersion.V5


def stream(*batches: pa.RecordBatch, compression: str | None = "zstd", version: pa.ipc.MetadataVersion = V5) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression, metadata_version=version)
    with pa.ipc.new_stream(sink, batches[0].schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())


def batch_of(rows: int) -> pa.RecordBatch:
    noise = np.random.default_rng(rows)
    columns = [
        pa.array(np.zeros(rows, np.int64)),
        pa.array(noise.integers(0, 256, rows).astype(np.uint8)),
        pa.array([b"x" * (row % 7) for row in range(rows)], pa.binary()),
    ]
    return pa.record_batch(columns, names=["zeros", "noise", "texts"])


SMALL = stream(batch_of(3))


@pytest.mark.parametrize("rows", [0, 1, 3, 1000, 100_000])
@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_compressed_streams(rows: int, compression: str) -> None:
    batch = batch_of(rows)
    expected = sum(buffer.size for column in batch.columns for buffer in column.buffers() if buffer is not None)
    assert abs(decoded_bytes(memoryview(stream(batch, compression=compression)), "x") - expected) <= 64  # padding


def test_several_batches_add_up() -> None:
    one, two = batch_of(1000), batch_of(5000)
    together = decoded_bytes(memoryview(stream(one, two)), "x")
    assert together == sum(decoded_bytes(memoryview(stream(each)), "x") for each in (one, two))


def test_a_stream_that_is_not_compressed_is_as_large_as_it_is() -> None:
    data = stream(batch_of(1000), compression=None)
    assert 8000 < decoded_bytes(memoryview(data), "x") < len(data)


def test_dictionaries_are_refused() -> None:
    batch = pa.record_batch([pa.array(["a", "b", "a"]).dictionary_encode()], names=["x"])
    with pytest.raises(FormatError, match="message of kind 2"):
        decoded_bytes(memoryview(stream(batch)), "x")


def test_older_metadata_is_refused() -> None:
    """There the compression could stand where it is not looked for."""
    with pytest.raises(FormatError, match="metadata of another version than 5"):
        decoded_bytes(memoryview(stream(batch_of(3), compression=None, version=V4)), "x")


def read(data: bytes) -> tuple[int, str]:
    """(size, "") or (-1, why not)."""
    try:
        return decoded_bytes(memoryview(data), "x"), ""
    except FormatError as error:
        return -1, str(error)


@given(st.integers(0, len(SMALL) - 1), st.integers(1, 255))
def test_flips_lead_nowhere(at: int, mask: int) -> None:
    size, refusal = read(SMALL[:at] + bytes([SMALL[at] ^ mask]) + SMALL[at + 1 :])
    assert size >= 0 or refusal.startswith("x: Arrow stream cannot be read (")
    assert "\n" not in refusal


@pytest.mark.parametrize("size", range(1, len(SMALL), 7))
def test_a_stream_that_is_cut_off(size: int) -> None:
    """It is refused, or what is left is a whole beginning."""
    assert read(SMALL[:size])[0] in (-1, 0, read(SMALL)[0])


def test_a_buffer_that_claims_the_whole_memory() -> None:
    at = SMALL.index(struct.pack("<q", 24))  # three 64-bit zeros
    claimed = SMALL[:at] + struct.pack("<q", 1 << 60) + SMALL[at + 8 :]
    assert decoded_bytes(memoryview(claimed), "x") >= 1 << 60


def test_limits_of_a_container() -> None:
    capture = two_stack_capture(run_info("s", "a"), repeat=1000)
    data = encode(capture)
    enough = DecodeLimits(head_bytes=10_000, table_bytes=3000 * 29 + 1000, named_rows=3)
    assert len(decode(data, "x", enough).samples) == 3000
    for limits, message in (
        (DecodeLimits(100, 1 << 20, 100), r"x: byte 16: head of \d+ bytes, but at most 100 are taken"),
        (DecodeLimits(10_000, 3000 * 29, 100), r"x: tables of \d+ bytes when decompressed, but at most 87000 are taken"),
        (DecodeLimits(10_000, 1 << 20, 2), "x: table 'strings' has 3 rows, but at most 2 are taken"),
    ):
        with pytest.raises(FormatError, match=message):
            decode(data, "x", limits)


@given(st.lists(st.floats(0, 1), max_size=40))
def test_depths_are_those_of_walking_outward(places: list[float]) -> None:
    prefix = np.array([int(place * (row + 1)) - 1 for row, place in enumerate(places)], np.int32)
    prefix = np.minimum(prefix, np.arange(-1, len(prefix) - 1, dtype=np.int32))
    expected = []
    for row in range(len(prefix)):
        above, depth = int(prefix[row]), 0
        while above >= 0:
            above, depth = int(prefix[above]), depth + 1
        expected.append(depth)
    assert stack_depths(prefix).tolist() == expected
