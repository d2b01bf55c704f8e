"""Uploads of a few KB that would fill the memory: refused by a process that could not hold them."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import zstandard

from profiler.codec.framing import frame, read_head, read_preamble, read_sections
from profiler.codec.upgrades import CURRENT_VERSION
from profiler.protocol.upload import UploadOffer
from support.uploading import Bench, capture_bytes, debug_offer_of, offer_of, open_bench

MIB = 1 << 20
ROWS = 1 << 28
STACKS = 3  # the number of the table in docs/formats.md
TESTS = Path(__file__).resolve().parents[4]
# What Python, numpy and pyarrow map before anything is read; half of what a bomb holds.
ADDRESS_SPACE_BYTES = 1800 * MIB
UPLOADER = """
import json, sys
from pathlib import Path
from profiler.codec.json_values import from_json
from profiler.protocol.upload import UploadOffer
from profiler.service.aggregator import open_aggregator
from support.uploading import upload
offer = from_json(UploadOffer, json.loads(sys.argv[3]))
result = upload(open_aggregator(Path(sys.argv[1]), create=False).ingest, Path(sys.argv[2]).read_bytes(), offer)
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
print(json.dumps([result.refusal, int(status["VmHWM"].split()[0]) * 1024]))
"""


def uploaded_elsewhere(bench: Bench, tmp_path: Path, data: bytes, offer: UploadOffer) -> tuple[str, int]:
    """(refusal, the most memory that a process of its own used for it, in bytes)."""
    (tmp_path / "content").write_bytes(data)
    fields = {name: getattr(offer, name) for name in UploadOffer.__slots__}
    command = [sys.executable, "-c", UPLOADER, str(bench.ingest.store.directory), str(tmp_path / "content"), json.dumps(fields)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS.parent), str(TESTS)]), "OPENBLAS_NUM_THREADS": "1"}
    environment["MALLOC_ARENA_MAX"] = "2"
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=120, preexec_fn=_limit_memory
    )
    assert done.returncode == 0, done.stderr
    refusal, peak_bytes = json.loads(done.stdout)
    return str(refusal), int(peak_bytes)


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE_BYTES, ADDRESS_SPACE_BYTES))


def bomb_container() -> bytes:
    """A capture whose table of stacks has 2**28 rows of two 32-bit numbers: 2 GiB, compressed to some KB."""
    import pyarrow as pa

    zeros = np.zeros(ROWS, np.int32)
    batch = pa.record_batch([pa.array(zeros), pa.array(zeros)], names=["prefix", "frame"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(batch)
    return with_section(STACKS, sink.getvalue().to_pybytes(), ROWS)


def with_section(number: int, section: bytes, rows: int) -> bytes:
    view = memoryview(capture_bytes())
    preamble = read_preamble(view, "x")
    sections = [bytes(each) for each in read_sections(view, preamble, "x")]
    sections[number] = section
    head = json.loads(bytes(read_head(view, preamble, "x")))
    head["tables"][number][1] = rows
    return frame(CURRENT_VERSION, json.dumps(head).encode(), sections)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return open_bench(tmp_path / "store")


def test_a_capture_that_fits_is_taken_by_the_same_process(bench: Bench, tmp_path: Path) -> None:
    data = capture_bytes(repeat=300_000)
    refusal, peak_bytes = uploaded_elsewhere(bench, tmp_path, data, offer_of(data))
    assert refusal == ""
    assert peak_bytes < 600 * MIB  # 26 MB of tables; the rest is Python with its libraries
    assert [run.summary.samples for run in bench.ingest.store.runs()] == [900_000]


def test_a_bomb_of_two_gigabytes_in_a_capture(bench: Bench, tmp_path: Path) -> None:
    data = bomb_container()
    assert len(data) < 300_000
    refusal, peak_bytes = uploaded_elsewhere(bench, tmp_path, data, offer_of(data))
    claimed = re.search(r"tables of (\d+) bytes when decompressed, but at most 536870912 are taken", refusal)
    assert claimed is not None, refusal
    assert 0 < int(claimed[1]) - 2**31 < 1000  # the other tables have a few rows
    assert peak_bytes < 300 * MIB
    assert bench.ingest.store.runs() == ()


def test_a_table_of_very_many_empty_names(bench: Bench, tmp_path: Path) -> None:
    """Within the size that is allowed, but every row would become an object."""
    import pyarrow as pa

    rows = 100_000_000
    offsets = pa.py_buffer(np.zeros(rows + 1, np.int32))
    column = pa.Array.from_buffers(pa.binary(), rows, [None, offsets, pa.py_buffer(b"")])
    batch = pa.record_batch([column], names=["text"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(batch)
    data = with_section(0, sink.getvalue().to_pybytes(), rows)
    refusal, peak_bytes = uploaded_elsewhere(bench, tmp_path, data, offer_of(data))
    assert "table 'strings' has 100000000 rows, but at most 500000 are taken" in refusal
    assert peak_bytes < 300 * MIB


def test_a_head_that_would_become_very_many_objects(bench: Bench, tmp_path: Path) -> None:
    head = b"[" + b"[]," * (3 << 20) + b"[]]"
    data = frame(CURRENT_VERSION, head, [])
    refusal, peak_bytes = uploaded_elsewhere(bench, tmp_path, data, offer_of(data))
    assert "but at most 8388608 are taken" in refusal
    assert peak_bytes < 500 * MIB  # the content itself is read by the uploading half of the same process


def test_a_bomb_of_two_gigabytes_in_a_debug_file(bench: Bench, tmp_path: Path) -> None:
    bench.ingest.captured.add("host1", bench.session, ["ab" * 20])
    packer = zstandard.ZstdCompressor().compressobj()
    data = b"".join(packer.compress(bytes(MIB)) for _ in range(2048)) + packer.flush()
    assert len(data) < 300_000
    refusal, peak_bytes = uploaded_elsewhere(bench, tmp_path, data, debug_offer_of(data, "ab" * 20))
    assert refusal == f"more than {256 * len(data)} bytes when decompressed"
    assert peak_bytes < 300 * MIB
    assert not (bench.ingest.store.directory / "debug").exists()
    assert list((bench.ingest.store.directory / "tmp").iterdir()) == []


def test_a_window_larger_than_anybody_needs(bench: Bench, tmp_path: Path) -> None:
    bench.ingest.captured.add("host1", bench.session, ["ab" * 20])
    parameters = zstandard.ZstdCompressionParameters(window_log=30, strategy=1, hash_log=6, chain_log=6)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    data = packer.compress(b"\x7fELF" + bytes(MIB)) + packer.flush()
    refusal, peak_bytes = uploaded_elsewhere(bench, tmp_path, data, debug_offer_of(data, "ab" * 20))
    assert "requires too much memory" in refusal
    assert peak_bytes < 300 * MIB
