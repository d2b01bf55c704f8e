"""Public recordings of many perf versions against what Google's quipper and perf 6.1 found in them."""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from collectors.ingest.ingest import IngestEnvironment, ingest
from collectors.perf_data.reader import Chunk, open_recording
from profiler.errors import FormatError
from profiler.model.capture import Capture
from profiler.model.dso import Dso
from profiler.model.frame_table import CpuMode, lookup_offsets
from profiler.model.run import CaptureInfo, RunIdentity, RunMode
from support.perf_script_text import BAD_ADDRESS, Frame, PrintedSample, printed_samples
from symbolize.elf.image import ElfImage, parse_image

QUIPPER = "google+perf_data_converter/src/quipper/testdata"
FROM_QUIPPER = (
    "perf.data.armv7-3.4", "perf.data.branch-4.14", "perf.data.branch_stack_hw_index", "perf.data.busy.0-3.4",
    "perf.data.busy.1-3.4", "perf.data.callgraph-3.4", "perf.data.forkexit-3.4", "perf.data.group_desc-4.14",
    "perf.data.hw_and_sw-3.4", "perf.data.lost_samples-4.4", "perf.data.numatopology-3.2",
    "perf.data.piped.ctx_switch_namespaces-4.14", "perf.data.piped.header_features-4.16", "perf.data.piped.hw_and_sw-3.4",
    "perf.data.piped.lost_samples-4.4", "perf.data.piped.no_attr_ids-4.14", "perf.data.piped.target-3.4",
    "perf.data.piped.target.throttled-3.4", "perf.data.raw-3.4", "perf.data.remmap-3.2", "perf.data.singleprocess-3.4",
    "perf.data.singleprocess-3.8", "perf.data.systemwide.0-3.4", "perf.data.systemwide.1-3.4", "perf.data.systemwide.5-3.4",
    "perf.data.throttle-3.8", "perf.data.weight_struct",
)  # fmt: skip
PERFPARSER = "KDAB+perfparser/tests/auto/perfdata"
OTHERS = (
    f"{PERFPARSER}/contentsize.data",
    f"{PERFPARSER}/fork_static_gcc/perf.data.zstd",
    f"{PERFPARSER}/parallel_static_gcc/perf.data.zstd",
    f"{PERFPARSER}/probe.data.file",
    f"{PERFPARSER}/vector_static_gcc/perf.data",
    "KDAB+hotspot/tests/integrationtests/file_content/perf.data.true.v2",
    "google+perf_data_converter/src/testdata/single-event-multi-process.perf.data",
    "google+perf_data_converter/src/testdata/single-event-single-process.perf.data",
)
PRINTED_BY_PERF = (*(f"{QUIPPER}/{name}" for name in FROM_QUIPPER), *OTHERS)
# perf prints no more frames of a callchain.
MAX_PRINTED_FRAMES = 127

# Where perf and slotscope say different things, and how often: what perf gets wrong, or does not do.
EXPLAINED: dict[str, Counter[str]] = {
    "perf.data.callgraph-3.4": Counter({"perf prints 127 frames": 2}),
    "perf.data.systemwide.5-3.4": Counter({"tid 0 of an exiting process": 1}),
    "perf.data.throttle-3.8": Counter({"tid 0 of an exiting process": 1}),
    f"{PERFPARSER}/contentsize.data": Counter({"perf unwound less": 63}),
    f"{PERFPARSER}/fork_static_gcc/perf.data.zstd": Counter({"perf unwound less": 106}),
    f"{PERFPARSER}/parallel_static_gcc/perf.data.zstd": Counter(
        {"perf left out or repeated a frame": 5, "perf unwound less": 18}
    ),
    f"{PERFPARSER}/probe.data.file": Counter({"perf prints no address of a tracepoint": 1}),
    f"{PERFPARSER}/vector_static_gcc/perf.data": Counter({"perf unwound less": 43}),
    "KDAB+hotspot/tests/integrationtests/file_content/perf.data.true.v2": Counter({"perf unwound less": 1}),
}


class BinariesBeside:
    """The binaries that lie in the recording's folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cache  # noqa: B019 - lives as long as one test
    def image(self, dso: Dso) -> ElfImage | None:
        path = self._folder / Path(dso.path).name
        return parse_image(path.read_bytes(), path.name) if dso.path and path.is_file() else None


def capture_of(path: Path) -> Capture:
    with path.open("rb") as stream:
        recording = open_recording(stream, path.name)
        info = CaptureInfo(RunIdentity("file", "x", 0, RunMode.IMPORTED))
        return ingest(recording, info, IngestEnvironment(BinariesBeside(path.parent), None))


@pytest.fixture(scope="module")
def quipper(corpus: Path) -> dict[str, Any]:
    expected: dict[str, Any] = json.loads((corpus / "EXPECTED" / "quipper.handed.json").read_text())
    return expected


@pytest.fixture(scope="module")
def by_perf(corpus: Path) -> dict[str, Any]:
    expected: dict[str, Any] = json.loads((corpus / "EXPECTED" / "perf61.handed.json").read_text())
    return expected


def column(chunks: list[Chunk], name: str) -> np.ndarray[Any, np.dtype[Any]]:
    return np.concatenate([getattr(chunk.fields, name) for chunk in chunks])


@pytest.mark.parametrize("name", FROM_QUIPPER)
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
        assert int(column(chunks, "branch_count").sum()) == samples["branch_entries_total"]
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
    assert index.side_band.lost_records == expected["lost"]
    assert index.skipped == ()
    assert recording.features.hostname == expected["hostname"]
    assert recording.features.version == expected["perf_version"]
    assert " ".join(recording.features.cmdline) == expected["cmdline"]
    assert len(recording.features.build_ids) == expected["build_ids"]
    assert [len(event.ids) for event in recording.attributes] == [attribute["ids"] for attribute in expected["attrs"]]
    # Pipes of old perfs describe no events.
    described = expected["event_types"] or [event.name for event in recording.attributes]
    assert [event.name for event in recording.attributes] == described


@pytest.mark.parametrize("name", FROM_QUIPPER)
def test_captures_keep_every_sample_and_its_weight(name: str, corpus: Path, quipper: dict[str, Any]) -> None:
    expected = quipper[name]["samples"]
    capture = capture_of(corpus / QUIPPER / name)
    assert len(capture.samples) == expected["n"]
    assert len(set(capture.threads.pid.tolist())) == expected["distinct_pids"]
    if expected["sum_period"]:
        assert int(capture.samples.weight.sum()) == expected["sum_period"]
    else:
        # Recorded with -c, samples carry no period: each stands for the one that was asked for.
        fixed = re.search(r" -c (\d+) ", quipper[name]["cmdline"])
        assert set(capture.samples.weight.tolist()) == {int(fixed[1]) if fixed else 1_000_000}
    lengths = [len(capture.stacks.frames_leaf_first(stack)) for stack in capture.samples.stack.tolist()]
    if expected["with_callchain"]:
        assert sum(lengths) == expected["callchain_entries_total"] - expected["callchain_context_markers"]
    else:
        assert set(lengths) == {1}


def test_sample_counts_of_all_recordings_that_perf_reads(corpus: Path, by_perf: dict[str, Any]) -> None:
    """Damaged files aside, of which other tests ask for one line."""
    found, expected = {}, {}
    for name, facts in by_perf.items():
        if facts["dump_records"].get("SAMPLE") and "/corpus/" not in name:
            expected[name] = facts["dump_records"]["SAMPLE"]
            found[name] = len(capture_of(corpus / name).samples)
    assert len(expected) >= 35
    assert found == expected


def test_host_and_command_as_perf_prints_them(corpus: Path, by_perf: dict[str, Any]) -> None:
    compared = 0
    for name, facts in by_perf.items():
        if facts["cmdline"] and "/corpus/" not in name:
            with (corpus / name).open("rb") as stream:
                features = open_recording(stream, name).features
            assert (features.hostname, features.version, features.arch) == (
                facts["hostname"], facts["perf_version"], facts["arch"]
            ), name  # fmt: skip
            assert " ".join(features.cmdline).strip() == facts["cmdline"], name
            compared += 1
    assert compared >= 30


def ours(capture: Capture, sample: int) -> PrintedSample:
    """A sample as perf would print it: user callers found by unwinding stand one byte before their return address."""
    samples, threads, frames = capture.samples, capture.threads, capture.frames
    thread = int(samples.thread[sample])
    is_unwound = capture.info.perf.call_graph == "dwarf"
    stack = []
    for row in capture.stacks.frames_leaf_first(int(samples.stack[sample])):
        is_before = is_unwound and frames.is_return_address[row] and frames.mode[row] == CpuMode.USER
        stack.append((capture.dsos[frames.dso[row]].path, int(frames.offset[row]) - int(is_before)))
    return PrintedSample(
        capture.strings[threads.thread_name[thread]],
        int(threads.tid[thread]),
        int(samples.cpu[sample]),
        int(samples.time_ns[sample]),
        int(samples.weight[sample]),
        capture.events[samples.event[sample]].name,
        False,
        stack,
    )


def as_printed(mine: PrintedSample, theirs: PrintedSample) -> PrintedSample:
    """``mine`` without what perf did not print: the CPU of recordings of one process, the period of tracepoints; and of
    single user addresses, which perf prints as they were at run time, what a mapping leaves alone."""
    frames = mine.frames
    if theirs.is_single:
        frames = [page_part(frame) for frame in frames]
    return replace(
        mine,
        cpu=mine.cpu if theirs.cpu >= 0 else -1,
        period=mine.period if theirs.period else 0,
        is_single=theirs.is_single,
        frames=frames,
    )


def page_part(frame: Frame) -> Frame:
    dso, address = frame
    return (dso, address) if dso.startswith("[") and dso != "[vdso]" else (dso, address % 4096)


def explanation(mine: PrintedSample, theirs: PrintedSample, is_unwound: bool) -> str:
    """Why the two differ, "" when no known reason covers all of it."""
    if (mine.comm, theirs.comm, mine.tid) == (":0", "swapper", 0):
        return "tid 0 of an exiting process"
    if mine.head() != theirs.head():
        return ""
    if not theirs.frames and ":" in mine.event:
        return "perf prints no address of a tracepoint"
    if theirs.frames and theirs.frames[-1][1] == BAD_ADDRESS:
        theirs = replace(theirs, frames=theirs.frames[:-1])
    if len(theirs.frames) == MAX_PRINTED_FRAMES and mine.frames[:MAX_PRINTED_FRAMES] == theirs.frames:
        return "perf prints 127 frames"
    if mine.frames[: len(theirs.frames)] == theirs.frames:
        return "perf unwound less" if is_unwound else ""
    # Which of the two is right for these, the test of whole stacks below tells.
    return "perf left out or repeated a frame" if is_unwound and {*theirs.frames} <= {*mine.frames} else ""


@pytest.mark.parametrize(
    ("name", "binary"),
    [
        ("vector_static_gcc_perf.data", "vector_static_gcc_v9.1.0"),
        ("fork_static_gcc_perf.data.zstd", "fork"),
        ("parallel_static_gcc_perf.data.zstd", "parallel_static_gcc"),
    ],
)
def test_whole_user_stacks_of_static_programs(name: str, binary: str, corpus: Path) -> None:
    """perf gives most of them up after one frame; the expected ones are perfparser's."""
    folder, _, file = name.partition("_perf")
    expected = json.loads((corpus / "EXPECTED" / f"stacks.handed.{folder}.perf{file}.json").read_text())["samples"]
    path = corpus / PERFPARSER / folder / f"perf{file}"
    capture, image = capture_of(path), parse_image((path.parent / binary).read_bytes(), binary)
    wanted = sorted(
        (sample["tid"], nanoseconds(sample["time"]), [int(f["addr"], 16) for f in sample["frames"] if not is_kernel(f)])
        for sample in expected
    )
    found = []
    for row in range(len(capture.samples)):
        stack = np.array(capture.stacks.frames_leaf_first(int(capture.samples.stack[row])))
        stack = stack[capture.frames.mode[stack] == CpuMode.USER]
        lookup = lookup_offsets(capture.frames.offset[stack], capture.frames.is_return_address[stack])
        tid = int(capture.threads.tid[capture.samples.thread[row]])
        found.append((tid, int(capture.samples.time_ns[row]), image.link_addresses(lookup).tolist()))
    assert sorted(found) == wanted


def nanoseconds(seconds: str) -> int:
    whole, _, rest = seconds.partition(".")
    return int(whole) * 10**9 + int(rest)


def is_kernel(frame: dict[str, Any]) -> bool:
    return bool(frame["funcs"][-1]["kernel"])


@pytest.mark.parametrize("name", PRINTED_BY_PERF)
def test_threads_times_and_stacks_equal_those_of_perf(name: str, corpus: Path) -> None:
    text = corpus / "EXPECTED" / "perf-script" / "handed" / f"{name.replace('/', '_')}.txt.gz"
    with gzip.open(text, "rt", encoding="utf-8", errors="surrogateescape") as lines:
        theirs = sorted(printed_samples(lines), key=PrintedSample.sort_key)
    capture = capture_of(corpus / name)
    mine = sorted((ours(capture, row) for row in range(len(capture.samples))), key=PrintedSample.sort_key)
    assert len(mine) == len(theirs)
    reasons: Counter[str] = Counter()
    for own, other in zip(mine, theirs, strict=True):
        own = as_printed(own, other)
        if other.is_single:
            other = replace(other, frames=[page_part(frame) for frame in other.frames])
        if own != other:
            reason = explanation(own, other, capture.info.perf.call_graph == "dwarf")
            assert reason, f"{own}\n{other}"
            reasons[reason] += 1
    assert reasons == EXPLAINED.get(name.removeprefix(f"{QUIPPER}/"), Counter())


def test_weights_per_event_equal_perfs(corpus: Path) -> None:
    name = f"{QUIPPER}/perf.data.forkexit-3.4"
    text = corpus / "EXPECTED" / "perf-script" / "handed" / f"{name.replace('/', '_')}.txt.gz"
    theirs: Counter[str] = Counter()
    with gzip.open(text, "rt", encoding="utf-8") as lines:
        for sample in printed_samples(lines):
            theirs[sample.event] += sample.period
    capture = capture_of(corpus / name)
    mine = {
        event.name: int(capture.samples.weight[capture.samples.event == row].sum()) for row, event in enumerate(capture.events)
    }
    assert mine == theirs
    assert {event.name: event.unit for event in capture.events} == {name: name for name in theirs}


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


@pytest.mark.parametrize("name", ["sleep.data", "sleep.compressed.data", "sleep.compressed2.data"])
def test_attributes_of_a_newer_kernel_than_perf_6_1_reads(name: str, corpus: Path) -> None:
    capture = capture_of(corpus / "mstange+linux-perf-data/tests/fixtures" / name)
    assert len(capture.samples) > 0
    assert capture.info.command[-2:] != ()


def test_a_tracepoint_keeps_its_name(corpus: Path) -> None:
    capture = capture_of(corpus / "KDAB+perfparser/tests/auto/perfdata/probe.data.file")
    assert [(event.name, event.unit) for event in capture.events] == [("probe_untitled1:main", "probe_untitled1:main")]
    assert int(capture.samples.time_ns[0]) <= 13732862274100
