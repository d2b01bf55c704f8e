"""Recordings of many perf versions against what Google's quipper and perf itself found in them."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from collectors.ingest.ingest import IngestEnvironment, ingest
from collectors.perf_data.reader import Chunk, open_recording
from profiler.errors import FormatError
from profiler.model.capture import Capture
from profiler.model.run import CaptureInfo, RunIdentity, RunMode
from support.no_images import NoImages

QUIPPER = "google+perf_data_converter/src/quipper/testdata"
FILE_MODE = (
    "perf.data.armv7-3.4", "perf.data.branch-4.14", "perf.data.branch_stack_hw_index", "perf.data.busy.0-3.4",
    "perf.data.busy.1-3.4", "perf.data.callgraph-3.4", "perf.data.forkexit-3.4", "perf.data.group_desc-4.14",
    "perf.data.hw_and_sw-3.4", "perf.data.lost_samples-4.4", "perf.data.numatopology-3.2", "perf.data.raw-3.4",
    "perf.data.remmap-3.2", "perf.data.singleprocess-3.4", "perf.data.singleprocess-3.8", "perf.data.systemwide.0-3.4",
    "perf.data.systemwide.1-3.4", "perf.data.systemwide.5-3.4", "perf.data.throttle-3.8", "perf.data.weight_struct",
)  # fmt: skip


def capture_of(path: Path) -> Capture:
    with path.open("rb") as stream:
        recording = open_recording(stream, path.name)
        return ingest(
            recording, CaptureInfo(RunIdentity("file", "x", 0, RunMode.IMPORTED)), IngestEnvironment(NoImages(), None)
        )


@pytest.fixture(scope="module")
def quipper(corpus: Path) -> dict[str, Any]:
    expected: dict[str, Any] = json.loads((corpus / "EXPECTED" / "quipper.handed.json").read_text())
    return expected


def column(chunks: list[Chunk], name: str) -> np.ndarray[Any, np.dtype[Any]]:
    return np.concatenate([getattr(chunk.fields, name) for chunk in chunks])


@pytest.mark.parametrize("name", FILE_MODE)
def test_raw_records_equal_quippers(name: str, corpus: Path, quipper: dict[str, Any]) -> None:
    expected, samples = quipper[name], quipper[name]["samples"]
    with (corpus / QUIPPER / name).open("rb") as stream:
        recording = open_recording(stream, name)
        index = recording.index()
        chunks = list(recording.chunks(index))
        assert len(column(chunks, "ip")) == samples["n"]
        assert int(column(chunks, "period").sum()) == samples["sum_period"]
        assert len(np.unique(column(chunks, "process_thread") & np.uint64(0xFFFFFFFF))) == samples["distinct_pids"]
        assert len(np.unique(column(chunks, "ip"))) == samples["distinct_ip"]
        assert int(column(chunks, "chain_length").sum()) == samples["callchain_entries_total"]
        times = column(chunks, "time_ns")
        assert (int(times.min()), int(times.max())) == (samples["min_time"], samples["max_time"])
        if isinstance(samples["per_event_id"], dict) and samples["per_event_id"]:
            ids, counts = np.unique(column(chunks, "event_id"), return_counts=True)
            found = dict(zip(map(str, ids.tolist()), counts.tolist(), strict=True))
            assert {number: count for number, count in found.items() if number != "0"} == {
                number: count for number, count in samples["per_event_id"].items() if number != "0"
            }
        assert sum(chunk.fields.mismatched for chunk in chunks) == 0
    assert len(index.side_band.comms) == expected["records"].get("COMM", 0)
    assert len(index.side_band.forks) == expected["records"].get("FORK", 0)
    assert index.side_band.throttled == expected["records"].get("THROTTLE", 0)
    assert recording.features.hostname == expected["hostname"]
    assert recording.features.version == expected["perf_version"]
    assert " ".join(recording.features.cmdline) == expected["cmdline"]
    assert len(recording.features.build_ids) == expected["build_ids"]
    assert [event.name for event in recording.attributes] == expected["event_types"]
    assert [len(event.ids) for event in recording.attributes] == [attribute["ids"] for attribute in expected["attrs"]]


@pytest.mark.parametrize("name", FILE_MODE)
def test_captures_keep_every_sample_and_its_weight(name: str, corpus: Path, quipper: dict[str, Any]) -> None:
    expected = quipper[name]["samples"]
    capture = capture_of(corpus / QUIPPER / name)
    assert len(capture.samples) == expected["n"]
    # Recorded with -c, samples carry no period: each stands for the one that was asked for.
    fixed = re.search(r" -c (\d+) ", quipper[name]["cmdline"])
    assert int(capture.samples.weight.sum()) == (expected["sum_period"] or expected["n"] * int(fixed[1] if fixed else 0))
    assert len(set(capture.threads.pid.tolist())) == expected["distinct_pids"]
    lengths = [len(capture.stacks.frames_leaf_first(stack)) for stack in capture.samples.stack.tolist()]
    if expected["with_callchain"]:
        assert sum(lengths) == expected["callchain_entries_total"] - expected["callchain_context_markers"]
    else:
        assert set(lengths) == {1}


def test_corrupt_files_end_in_one_line(corpus: Path) -> None:
    with (corpus / "INDEX.tsv").open() as stream:
        rows = [row for row in csv.DictReader(stream, delimiter="\t") if row["kind"] == "perfdata-corrupt"]
    assert len(rows) > 10
    for row in rows:
        with pytest.raises(FormatError) as caught:
            capture_of(corpus / row["stored"])
        message = str(caught.value)
        assert message.startswith(Path(row["stored"]).name)
        assert "\n" not in message


@pytest.mark.parametrize(
    ("name", "samples"),
    [
        ("google+perf_data_converter/src/testdata/single-event-multi-process.perf.data", 19989),
        ("google+perf_data_converter/src/testdata/single-event-single-process.perf.data", 45937),
        ("KDAB+hotspot/tests/integrationtests/file_content/perf.data.true.v2", 1),
        ("KDAB+perfparser/tests/auto/perfdata/probe.data.file", 1),
        ("KDAB+perfparser/tests/auto/perfdata/vector_static_gcc/perf.data", 45),
    ],
)
def test_sample_counts_of_other_recorders(name: str, samples: int, corpus: Path) -> None:
    assert len(capture_of(corpus / name).samples) == samples


def test_attributes_of_a_newer_kernel_than_perf_6_1_reads(corpus: Path) -> None:
    capture = capture_of(corpus / "mstange+linux-perf-data/tests/fixtures/sleep.data")
    assert len(capture.samples) > 0
    assert capture.info.command[-2:] != ()


def test_a_tracepoint_keeps_its_name(corpus: Path) -> None:
    capture = capture_of(corpus / "KDAB+perfparser/tests/auto/perfdata/probe.data.file")
    assert [(event.name, event.unit) for event in capture.events] == [("probe_untitled1:main", "probe_untitled1:main")]
    assert int(capture.samples.time_ns[0]) <= 13732862274100
