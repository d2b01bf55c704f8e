"""Recordings of pipes and with compressed records by many perf versions, against what quipper and perf itself found in them."""

from __future__ import annotations

import gzip
import json
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from collectors.ingest.ingest import IngestEnvironment, ingest
from collectors.perf_data.features import FeatureContent
from collectors.perf_data.reader import Chunk, Recording, open_recording
from collectors.perf_data.tracing_data import tracepoint_names
from profiler.errors import FormatError
from profiler.model.capture import Capture
from profiler.model.run import CaptureInfo, RunIdentity, RunMode
from support.no_images import NoImages

QUIPPER = "google+perf_data_converter/src/quipper/testdata"
PERFPARSER = "KDAB+perfparser/tests/auto/perfdata"
LINUX_PERF_DATA = "mstange+linux-perf-data/tests/fixtures"
PIPED = (
    "perf.data.piped.ctx_switch_namespaces-4.14", "perf.data.piped.header_features-4.16", "perf.data.piped.hw_and_sw-3.4",
    "perf.data.piped.lost_samples-4.4", "perf.data.piped.no_attr_ids-4.14", "perf.data.piped.target-3.4",
    "perf.data.piped.target.throttled-3.4",
)  # fmt: skip


def capture_of(path: Path) -> Capture:
    """On a host with neither the binaries nor the kernel of the recording."""
    info = CaptureInfo(RunIdentity("file", "x", 0, RunMode.IMPORTED))
    return ingest(opened(path), info, IngestEnvironment(NoImages(), None))


@pytest.fixture(scope="module")
def quipper(corpus: Path) -> dict[str, Any]:
    expected: dict[str, Any] = json.loads((corpus / "EXPECTED" / "quipper.handed.json").read_text())
    return expected


def column(chunks: list[Chunk], name: str) -> np.ndarray[Any, np.dtype[Any]]:
    return np.concatenate([getattr(chunk.fields, name) for chunk in chunks])


def opened(path: Path) -> Recording:
    with path.open("rb") as stream:
        return open_recording(stream, path.name)


@pytest.mark.parametrize("name", PIPED)
def test_records_of_pipes_equal_quippers(name: str, corpus: Path, quipper: dict[str, Any]) -> None:
    expected, samples = quipper[name], quipper[name]["samples"]
    recording = opened(corpus / QUIPPER / name)
    index = recording.index()
    chunks = list(recording.chunks(index))
    assert len(column(chunks, "ip")) == samples["n"]
    assert int(column(chunks, "period").sum()) == samples["sum_period"]
    assert len(np.unique(column(chunks, "process_thread") & np.uint64(0xFFFFFFFF))) == samples["distinct_pids"]
    assert len(np.unique(column(chunks, "ip"))) == samples["distinct_ip"]
    times = column(chunks, "time_ns")
    assert (int(times.min()), int(times.max())) == (samples["min_time"], samples["max_time"])
    ids, counts = np.unique(column(chunks, "event_id"), return_counts=True)
    found = {str(number): count for number, count in zip(ids.tolist(), counts.tolist(), strict=True) if number}
    assert found == {number: count for number, count in samples["per_event_id"].items() if number != "0"}
    assert sum(chunk.fields.mismatched for chunk in chunks) == 0
    assert not index.is_cut
    assert len(index.side_band.comms) == expected["records"].get("COMM", 0)
    assert len(index.side_band.forks) == expected["records"].get("FORK", 0)
    assert index.side_band.throttled == expected["records"].get("THROTTLE", 0)


@pytest.mark.parametrize("name", PIPED)
def test_facts_of_pipes_equal_quippers(name: str, corpus: Path, quipper: dict[str, Any]) -> None:
    expected = quipper[name]
    recording = opened(corpus / QUIPPER / name)
    features = recording.features
    assert (features.hostname, features.arch) == (expected["hostname"], expected["arch"])
    assert " ".join(features.cmdline) == expected["cmdline"]
    assert len(features.build_ids) == expected["build_ids"]
    attributes = [
        {"type": a.type, "config": a.config, "sample_type": a.sample_type, "read_format": a.read_format, "ids": len(a.ids)}
        for a in recording.attributes
    ]
    assert attributes == expected["attrs"]
    if expected["event_types"]:
        assert [event.name for event in recording.attributes] == expected["event_types"]


@pytest.mark.parametrize("name", PIPED)
def test_captures_of_pipes_keep_every_sample_and_its_weight(name: str, corpus: Path, quipper: dict[str, Any]) -> None:
    expected = quipper[name]["samples"]
    capture = capture_of(corpus / QUIPPER / name)
    assert len(capture.samples) == expected["n"]
    # Recorded with -c 1000000 (as its twin in a file says), samples carry no period.
    assert int(capture.samples.weight.sum()) == (expected["sum_period"] or expected["n"] * 1_000_000)
    assert len(set(capture.threads.pid.tolist())) == expected["distinct_pids"]
    assert not capture.quality.is_unfinished


HEAD = re.compile(
    r"^ *(?P<comm>.+?) +(?P<tid>\d+)(?: \[\d+\])? +(?P<s>\d+)\.(?P<ns>\d{9}):(?: +(?P<period>\d+))? +(?P<event>\S+): "
)

Head = tuple[str, int, int, int]


def printed(file: Path) -> list[Head]:
    """(name, thread, time, period) of the samples that perf 6.1 printed, one header line each; tracepoints count 1 each."""
    lines = gzip.decompress(file.read_bytes()).decode().splitlines()
    heads = [match for line in lines if (match := HEAD.match(line))]
    return [
        (head["comm"], int(head["tid"]), int(head["s"]) * 10**9 + int(head["ns"]), int(head["period"] or 1)) for head in heads
    ]


@pytest.mark.parametrize(
    ("name", "samples"),
    [
        *((f"{QUIPPER}/{name}", None) for name in PIPED),
        (f"{PERFPARSER}/contentsize.data", 69),
        (f"{PERFPARSER}/fork_static_gcc/perf.data.zstd", 106),
        (f"{PERFPARSER}/parallel_static_gcc/perf.data.zstd", 242),
    ],
)
def test_every_sample_is_the_one_that_perf_prints(name: str, samples: int | None, corpus: Path) -> None:
    theirs = printed(corpus / "EXPECTED/perf-script/handed" / f"{name.replace('/', '_')}.txt.gz")
    capture = capture_of(corpus / name)
    table, threads = capture.samples, capture.threads
    ours = [
        (capture.strings[threads.thread_name[row]], int(threads.tid[row]), time, weight)
        for row, time, weight in zip(table.thread.tolist(), table.time_ns.tolist(), table.weight.tolist(), strict=True)
    ]
    assert samples is None or len(theirs) == samples
    assert sorted(ours) == sorted(theirs)
    assert not capture.quality.is_unfinished


def test_records_of_perfs_that_6_1_does_not_read(corpus: Path) -> None:
    """Of one command (`sleep`), plain and with compressed records of the types 81 and 83; see the README beside them."""
    plain = capture_of(corpus / LINUX_PERF_DATA / "sleep.data")
    for name in ("sleep.compressed.data", "sleep.compressed2.data"):
        capture = capture_of(corpus / LINUX_PERF_DATA / name)
        assert len(capture.samples) in range(len(plain.samples), len(plain.samples) + 2)
        assert not capture.quality.is_unfinished
        assert {capture.strings[row] for row in capture.threads.thread_name.tolist()} <= {"sleep", "perf-exec", "perf"}


def test_every_byte_that_was_compressed_comes_out(corpus: Path) -> None:
    """Its pieces end inside records, and each holds more than the decompressor hands out at once."""
    name = "cpp-inlining/cpp-inlining.perf.data"
    capture = capture_of(corpus / PERFPARSER / name)
    assert len(capture.samples) > 0
    assert not capture.quality.is_unfinished
    assert capture.quality.skipped_records == ()


def test_version_1_is_refused_by_name(corpus: Path) -> None:
    with pytest.raises(FormatError, match=r"perf\.data\.true\.v1: perf\.data of version 1"):
        capture_of(corpus / "KDAB+hotspot/tests/integrationtests/file_content/perf.data.true.v1")


@pytest.mark.parametrize("name", ["probe.data.file", "parallel_static_gcc/perf.data.zstd"])
def test_tracing_data_names_tracepoints_as_the_event_descriptions_do(name: str, corpus: Path) -> None:
    """Files have both; of old perfs' pipes only the former is left."""
    content = (corpus / PERFPARSER / name).read_bytes()
    data_offset, data_size = struct.unpack_from("<QQ", content, 40)
    offset, size = struct.unpack_from("<QQ", content, data_offset + data_size)  # feature 1 is the first of the table
    assert content[72] & 2
    described = {event.config: event.name for event in opened(corpus / PERFPARSER / name).attributes if event.type == 2}
    assert tracepoint_names(FeatureContent(content[offset : offset + size], offset), name) == described != {}
