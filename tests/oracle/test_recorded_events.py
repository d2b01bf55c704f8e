"""Fresh recordings with all kinds of events and options: every sample as `perf script` prints it."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from collectors.perf_data.reader import open_recording
from collectors.recording_file import read_recording
from profiler.cli.main import main
from profiler.model.capture import Capture
from profiler.model.sample_table import StackState
from support import perf_data_writer as writer
from support.perf_data_writer import EventSpec, RecordingWriter, Sample
from support.perf_script_text import PrintedSample, printed_samples
from symbolize.locate import Locator

pytestmark = [pytest.mark.perf, pytest.mark.beside]

PROGRAM = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long sink;
__attribute__((noinline)) static void spin(void) { for (int i = 0; i < 200000; i++) sink += i * sink; }
__attribute__((noinline)) static void touch(void) {
    char *pages = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 1 << 20; i += 4096) pages[i] = 1;
    munmap(pages, 1 << 20);
}
static void work(int ms) {
    struct timespec from, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    do {
        spin();
        touch();
        usleep(100);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while ((now.tv_sec - from.tv_sec) * 1000 + (now.tv_nsec - from.tv_nsec) / 1000000 < ms);
}
static void *thread(void *argument) { work(60); return argument; }
int main(void) {
    pthread_t other;
    pthread_create(&other, 0, thread, 0);
    if (!fork()) { work(60); _exit(0); }
    work(60);
    pthread_join(other, 0);
    wait(0);
    return 0;
}
"""
CLOCK = ["-e", "cpu-clock", "-F", "1999"]
OPTIONS = {
    "two events": ["-e", "cpu-clock,page-faults", "-g"],
    "own rates": ["-e", "cpu-clock/freq=1999/,page-faults/period=7/"],
    "varying periods": ["-e", "page-faults", "-F", "1999"],
    "fixed periods": ["-e", "page-faults", "-c", "3"],
    "user and kernel apart": ["-e", "cpu-clock:u,cpu-clock:k", "-g"],
    "a group": ["-e", "{cpu-clock,page-faults}", "-g"],
    "a group that is read": ["-e", "{cpu-clock,page-faults}:S", "-g"],
    "three members": ["-e", "{task-clock,page-faults,context-switches}:S"],
    "a tracepoint": ["-e", "sched:sched_switch", "-g"],
    "a tracepoint beside a clock": ["-e", "cpu-clock", "-e", "sched:sched_switch", "-R", "-g"],
    "addresses and weights": [*CLOCK, "-g", "-d", "-W", "-T", "--sample-cpu", "--sample-identifier"],
    "physical addresses and page sizes": [*CLOCK, "-g", "-d", "--phys-data", "--data-page-size", "--code-page-size"],
    "transactions": [*CLOCK, "-g", "--transaction"],
    "registers": [*CLOCK, "-g", "--intr-regs=ax,ip", "--user-regs=sp,ip"],
    "cgroups": [*CLOCK, "-g", "--all-cgroups"],
    "switches and namespaces": [*CLOCK, "-g", "--switch-events", "--namespaces"],
    "callchains of user space alone": [*CLOCK, "-g", "--user-callchains", "-s"],
    "callchains of the kernel alone": [*CLOCK, "-g", "--kernel-callchains"],
    "build IDs in mappings": [*CLOCK, "-g", "--buildid-mmap"],
    "no inheritance": ["-e", "cpu-clock,page-faults", "--no-inherit", "-g"],
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("events")
    (folder / "program.c").write_text(PROGRAM)
    command = ["gcc", "-O2", "-g", "-fno-omit-frame-pointer", "-pthread", "program.c", "-o", "program"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder / "program"


def recorded(perf: str, path: Path, options: list[str], program: Path) -> Path:
    command = [perf, "record", "-N", "-q", "-o", str(path), *options, "--", str(program)]
    subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    return path


def printed(perf: str, path: Path) -> list[PrintedSample]:
    fields = "comm,pid,tid,time,period,event,ip,dso"
    command = [perf, "script", "-i", str(path), "--no-inline", "--ns", "-F", fields]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    return sorted(printed_samples(done.stdout.splitlines()), key=PrintedSample.sort_key)


def ours(capture: Capture, sample: int) -> PrintedSample:
    samples, threads, frames = capture.samples, capture.threads, capture.frames
    thread = int(samples.thread[sample])
    stack = capture.stacks.frames_leaf_first(int(samples.stack[sample]))
    return PrintedSample(
        capture.strings[threads.thread_name[thread]],
        int(threads.tid[thread]),
        -1,
        int(samples.time_ns[sample]),
        int(samples.weight[sample]),
        capture.events[samples.event[sample]].name,
        False,
        [(capture.dsos[frames.dso[row]].path, int(frames.offset[row])) for row in stack],
        int(threads.pid[thread]),
    )


def comparable(mine: PrintedSample, theirs: PrintedSample, has_data_mappings: bool) -> tuple[PrintedSample, PrintedSample]:
    """Both without what cannot be compared: runtime addresses of user code, which perf prints where there is no callchain;
    data mappings, which only perf names, in stacks that lost their way; and the sampled address as the only frame of an empty
    callchain, which perf leaves out."""
    if theirs.is_single:
        own, other = ([(dso, at if dso == "[kernel]" else 0) for dso, at in sample.frames] for sample in (mine, theirs))
        return replace(mine, frames=own), replace(theirs, frames=other, is_single=False)
    if not theirs.frames and len(mine.frames) == 1:
        return replace(mine, frames=[]), theirs
    if has_data_mappings and len(mine.frames) == len(theirs.frames):
        pairs = zip(mine.frames, theirs.frames, strict=True)
        return mine, replace(theirs, frames=[own if own[0] == "[unknown]" else other for own, other in pairs])
    return mine, theirs


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
def test_every_sample_is_as_perf_prints_it(perf: str, program: Path, tmp_path: Path, options: list[str]) -> None:
    path = recorded(perf, tmp_path / "perf.data", options, program)
    capture, theirs = read_recording(path, None, Locator()), printed(perf, path)
    mine = sorted((ours(capture, row) for row in range(len(capture.samples))), key=PrintedSample.sort_key)
    assert len(mine) == len(theirs) >= 15
    for own, other in zip(mine, theirs, strict=True):
        own, other = comparable(own, other, has_data_mappings="-d" in options)
        assert own == other
    assert capture.quality.skipped_records == ()
    assert not any("longer or shorter" in note for note in capture.quality.notes)


@pytest.mark.parametrize("options", [OPTIONS["switches and namespaces"], OPTIONS["a tracepoint beside a clock"]])
def test_records_of_each_type_are_as_many_as_perf_counts(perf: str, program: Path, tmp_path: Path, options: list[str]) -> None:
    path = recorded(perf, tmp_path / "perf.data", options, program)
    done = subprocess.run([perf, "report", "-D", "-i", str(path)], capture_output=True, check=True)
    counts = Counter(re.findall(rb"PERF_RECORD_(COMM|FORK|SAMPLE|LOST)\b", done.stdout))
    with path.open("rb") as stream:
        recording = open_recording(stream, "perf.data")
        index = recording.index()
        samples = sum(len(chunk.position) for chunk in recording.chunks(index))
    assert samples == counts[b"SAMPLE"]
    assert len(index.side_band.comms) == counts[b"COMM"]
    assert len(index.side_band.forks) == counts[b"FORK"]
    assert index.skipped == ()


def test_a_recording_without_times(perf: str, program: Path, tmp_path: Path) -> None:
    path = recorded(perf, tmp_path / "perf.data", ["-e", "cpu-clock", "-F", "1999", "-g", "--no-timestamp"], program)
    command = [perf, "script", "-i", str(path), "-F", "comm,pid,tid,period"]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    theirs = [tuple(line.rsplit(maxsplit=2)) for line in done.stdout.splitlines() if line.strip()]
    capture = read_recording(path, None, Locator())
    mine = [ours(capture, row) for row in range(len(capture.samples))]
    assert [(f"{sample.pid}/{sample.tid}", f"{sample.period}") for sample in mine] == [
        (thread, period.rstrip(":")) for _, thread, period in theirs
    ]
    # A thread can have its first samples in the file before its name, in another buffer; perf then prints ":" and its number.
    nameless = {f":{sample.tid}" for sample in mine}
    names = [(sample.comm, comm.strip()) for sample, (comm, _, _) in zip(mine, theirs, strict=True)]
    assert {(own, other) for own, other in names if other not in nameless and own != other} == set()
    assert {own for own, _ in names} <= {"program", "perf", "perf-exec"}
    own = [sample for sample in mine if any(dso == str(program) for dso, _ in sample.frames)]
    assert len(own) > len(mine) // 2


def test_losses_are_counted_once(perf: str, program: Path, tmp_path: Path) -> None:
    """A buffer of four pages cannot hold what is asked for; the kernel tells of the same losses in records of two kinds."""
    options = ["-m", "4", "-e", "cpu-clock", "-c", "50000", "--call-graph", "dwarf,8192"]
    path = recorded(perf, tmp_path / "perf.data", options, program)
    done = subprocess.run([perf, "report", "-D", "-i", str(path)], capture_output=True, check=True)
    in_place = sum(map(int, re.findall(rb"PERF_RECORD_LOST: id:\d+: lost:(\d+)", done.stdout)))
    at_the_end = sum(map(int, re.findall(rb"PERF_RECORD_LOST_SAMPLES: id:\d+: lost samples :(\d+)", done.stdout)))
    assert in_place > 0
    quality = read_recording(path, None, Locator()).quality
    assert quality.lost_samples == max(in_place, at_the_end)
    assert quality.samples == len(re.findall(rb"PERF_RECORD_SAMPLE\b", done.stdout))


def test_host_and_settings_are_those_of_the_header(perf: str, program: Path, tmp_path: Path) -> None:
    path = recorded(perf, tmp_path / "perf.data", OPTIONS["two events"], program)
    done = subprocess.run([perf, "report", "--header-only", "-i", str(path)], capture_output=True, check=True, text=True)
    pairs = re.findall(r"^# ([a-z ]+?) *: (.*?) *$", done.stdout, re.MULTILINE)
    header = dict(pairs)
    info = read_recording(path, None, Locator()).info
    host = info.host
    assert (host.hostname, host.kernel, host.architecture, host.cpu, host.cpu_count) == (
        header["hostname"], header["os release"], header["arch"], header["cpudesc"], int(header["nrcpus online"]),
    )  # fmt: skip
    assert info.perf.perf_version == header["perf version"]
    assert " ".join(info.perf.perf_command) == header["cmdline"]
    assert info.command == (str(program),)
    assert (info.perf.event, info.perf.frequency_hz, info.perf.call_graph) == ("cpu-clock", 4000, "fp")
    described = re.findall(r"^# event : name = (\S+), ", done.stdout, re.MULTILINE)
    assert [event.name for event in read_recording(path, None, Locator()).events] == [
        name for name in described if not name.startswith("dummy")
    ]


def test_the_report_shows_the_clock_and_names_the_other_event(
    perf: str, program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recorded(perf, tmp_path / "perf.data", ["-e", "page-faults,cpu-clock,cpu-migrations", "-g"], program)
    counts = Counter(sample.event for sample in printed(perf, path))
    document = json_report(path, capsys)
    assert (document["event"], document["unit"]) == ("cpu-clock", "ns")
    assert document["total"] == sum(sample.period for sample in printed(perf, path) if sample.event == "cpu-clock")
    (message,) = [warning["message"] for warning in document["warnings"] if warning["code"] == "other-events"]
    assert f"page-faults ({counts['page-faults']} samples)" in message
    assert ("cpu-migrations" in message) == (counts["cpu-migrations"] > 0)
    faults = json_report(path, capsys, "--event", "page-faults")
    assert (faults["event"], faults["unit"], faults["total"]) == (
        "page-faults",
        "page-faults",
        sum(sample.period for sample in printed(perf, path) if sample.event == "page-faults"),
    )
    assert not [warning for warning in faults["warnings"] if warning["code"] == "other-events"]


def test_an_event_that_never_happened_is_no_reason_to_ask(
    perf: str, program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["-e", "alignment-faults,page-faults,emulation-faults", "-c", "9"]
    document = json_report(recorded(perf, tmp_path / "perf.data", options, program), capsys)
    assert document["event"] == "page-faults"


def json_report(path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    assert main(["report", str(path), "--format", "json", *options]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_branch_call_stacks_as_perf_resolves_them(perf: str, tmp_path: Path) -> None:
    """No recording, as the processor may have no such branch records: perf reads a file that is written here."""
    event = EventSpec(
        type=0,
        attribute_bytes=128,
        sample_type=writer.USUAL | writer.BRANCH_STACK,
        branch_sample_type=1 | writer.CALL_STACK | writer.HW_INDEX,
    )
    content = RecordingWriter([event])
    content.comm(10, 10, b"prog", time=1)
    content.mmap2(10, 0x400000, 0x10000, 0x2000, b"/bin/prog", time=1)
    kernel, user, code = writer.KERNEL_MARKER, writer.USER_MARKER, 0xFFFFFFFF81000000
    whole = (kernel, code + 1, code + 2, user, 0x400110, 0x1234)
    calls = ((0x400300, 0x400100, 0), (0x400500, 0x400200, 0), (0x400700, 0x400600, 0))
    content.sample(Sample(ip=code + 1, time=2, chain=whole, branches=calls, misc=1))
    content.sample(Sample(ip=0x400110, time=3, chain=(user, 0x400110), branches=calls[:1]))
    content.sample(Sample(ip=code, time=5, chain=(kernel, code), branches=calls, misc=1))
    path = tmp_path / "perf.data"
    path.write_bytes(content.build())
    capture, theirs = read_recording(path, None, Locator()), printed(perf, path)
    assert [len(sample.frames) for sample in theirs] == [6, 2, 1]
    for row, other in enumerate(theirs):
        assert [at for _, at in ours(capture, row).frames] == [at for _, at in other.frames]


def test_branch_call_stacks_lack_no_caller(tmp_path: Path) -> None:
    """The same frames found by frame pointers may lack one: the innermost function keeps none."""
    source = "int main(void) { return 0; } __attribute__((noinline)) int leaf(int x) { return x * 3; }"
    (tmp_path / "prog.c").write_text(source)
    command = ["gcc", "-O2", "-fomit-frame-pointer", "-no-pie", "prog.c", "-o", "prog"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    symbols = subprocess.run(["nm", "prog"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    address = {name: int(value, 16) for value, _, name in (line.split() for line in symbols.splitlines() if line[0] != " ")}
    event = EventSpec(sample_type=writer.USUAL | writer.BRANCH_STACK, branch_sample_type=writer.CALL_STACK)
    content = RecordingWriter([event])
    content.comm(10, 10, b"prog", time=1)
    content.mmap2(10, 0x400000, 0x100000, 0, bytes(tmp_path / "prog"), time=1)
    leaf, caller, start = address["leaf"], address["main"] + 2, address["_start"] + 6
    calls = ((caller, leaf, 0), (start, address["main"], 0))
    content.sample(Sample(ip=leaf, time=2, chain=(writer.USER_MARKER, leaf), branches=calls))
    content.sample(Sample(ip=leaf, time=3, chain=(writer.USER_MARKER, leaf, caller, start)))
    path = tmp_path / "perf.data"
    path.write_bytes(content.build())
    capture = read_recording(path, None, Locator())
    assert [at for _, at in ours(capture, 0).frames] == [at - 0x400000 for at in (leaf, caller, start)]
    assert capture.samples.state.tolist() == [StackState.COMPLETE, StackState.GAP_POSSIBLE]
