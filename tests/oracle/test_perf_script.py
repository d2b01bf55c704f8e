"""Fresh recordings: every sample and every frame as `perf script` prints them."""

from __future__ import annotations

import re
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from collectors.recording_file import read_recording
from profiler.model.capture import Capture
from profiler.model.frame_table import CpuMode
from profiler.model.run import CaptureInfo, RunIdentity, RunMode
from profiler.model.sample_table import StackState
from symbolize.locate import Locator

pytestmark = [pytest.mark.perf, pytest.mark.beside]

PROGRAM = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long sink;
__attribute__((noinline)) unsigned long leaf(unsigned long x) { for (int i = 0; i < 400; i++) x = x * 31 + i; return x; }
__attribute__((noinline)) unsigned long down(int depth, unsigned long x) {
    return depth ? down(depth - 1, x + 1) + depth : leaf(x);
}
static int compare(const void *a, const void *b) { sink += down(3, 1); return *(const int *)a - *(const int *)b; }
static void work(int ms) {
    struct timespec from, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    do {
        for (int i = 0; i < 40; i++) sink += down(i % 23, i);
        int numbers[64];
        for (int i = 0; i < 64; i++) numbers[i] = i * 7919 % 64;
        qsort(numbers, 64, sizeof *numbers, compare);
        char *memory = malloc(300000);
        memset(memory, 1, 300000);
        sink += memory[sink % 300000];
        free(memory);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while ((now.tv_sec - from.tv_sec) * 1000 + (now.tv_nsec - from.tv_nsec) / 1000000 < ms);
}
static void *thread(void *name) { prctl(PR_SET_NAME, name); work(100); return 0; }
int main(int count, char **arguments) {
    if (count > 1 && !strcmp(arguments[1], "child")) { work(60); return 0; }
    pthread_t threads[2];
    pthread_create(&threads[0], 0, thread, "Web 33 (x)");
    pthread_create(&threads[1], 0, thread, "k/2:1");
    work(80);
    prctl(PR_SET_NAME, ":7: /9 [0]");
    work(50);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    if (count > 1) {
        if (!fork()) { work(60); _exit(0); }
        if (!fork()) { prctl(PR_SET_NAME, "before exec"); work(60); execl(arguments[0], arguments[0], "child", (char *)0); }
        while (wait(0) > 0) ;
    }
    return 0;
}
"""
SPIN = r"""
#include <pthread.h>
static volatile unsigned long sink;
void spin(int rounds) { for (int i = 0; i < rounds; i++) sink += i * sink; }
void outer(int rounds) { for (int i = 0; i < 8; i++) spin(rounds); }
void *thread(void *argument) { outer(5000000); return argument; }
int main(void) {
    pthread_t other;
    pthread_create(&other, 0, thread, 0);
    outer(5000000);
    pthread_join(other, 0);
    return 0;
}
"""
HEADER = re.compile(r"^\s*(.*?)\s+(-?\d+)/(-?\d+)\s+(\d+)\.(\d{9}):\s+(\d+)\s+(\S+):\s*(.*)$")
BAD_FRAME = 2**64 - 1  # perf ends some unwound stacks with it

Frame = tuple[str, int]


@dataclass
class Printed:
    """One sample of `perf script`; ``frames`` as (DSO, address), innermost first."""

    comm: str
    pid: int
    tid: int
    time_ns: int
    period: int
    event: str
    frames: list[Frame]

    def head(self) -> tuple[str, int, int, int, int, str]:
        return (self.comm, self.pid, self.tid, self.time_ns, self.period, self.event)


@pytest.fixture(scope="module")
def binaries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with frame pointers ("framed") and without ("bare")."""
    folder = tmp_path_factory.mktemp("perf script")
    (folder / "program.c").write_text(PROGRAM)
    for name, options in (("framed", ["-fno-omit-frame-pointer"]), ("bare", ["-fomit-frame-pointer"])):
        command = ["gcc", "-O2", "-g", "-pthread", *options, "program.c", "-o", name]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def record(perf: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Records a command with options of perf."""
    folder = tmp_path_factory.mktemp("recordings")

    def run(name: str, options: list[str], *command: Path | str) -> Path:
        path = folder / f"{name}.data"
        arguments = [perf, "record", "-N", "-q", "-o", str(path), *options, "--", *map(str, command)]
        subprocess.run(arguments, check=True, capture_output=True, stdin=subprocess.DEVNULL)
        return path

    return run


def printed(perf: str, path: Path) -> Iterator[Printed]:
    fields = "comm,pid,tid,time,period,event,ip,dso"
    done = subprocess.run(
        [perf, "script", "-i", str(path), "--no-inline", "--ns", "-F", fields], capture_output=True, check=True, text=True
    )
    current: Printed | None = None
    for line in done.stdout.splitlines():
        header = HEADER.match(line) if not line.startswith("\t  ") else None
        if header:
            if current is not None:
                yield current
            comm, pid, tid, seconds, nanoseconds, period, event, rest = header.groups()
            time_ns = int(seconds) * 10**9 + int(nanoseconds)
            current = Printed(comm, int(pid), int(tid), time_ns, int(period), event, [])
            line = rest
        if line.strip() and current is not None:
            address, _, dso = line.strip().partition(" ")
            current.frames.append((dso.strip()[1:-1], int(address, 16)))
    if current is not None:
        yield current


def ours(capture: Capture, sample: int) -> Printed:
    samples, threads, frames = capture.samples, capture.threads, capture.frames
    thread = int(samples.thread[sample])
    stack = capture.stacks.frames_leaf_first(int(samples.stack[sample]))
    return Printed(
        capture.strings[threads.thread_name[thread]],
        int(threads.pid[thread]),
        int(threads.tid[thread]),
        int(samples.time_ns[sample]),
        int(samples.weight[sample]),
        capture.events[samples.event[sample]].name,
        [(capture.dsos[frames.dso[row]].path, int(frames.offset[row])) for row in stack],
    )


def normalized(frames: list[Frame]) -> list[Frame]:
    """perf's spelling of names as ours."""
    names = {"[kernel.kallsyms]": "[kernel]", "[guest.kernel.kallsyms]": "[guest]"}
    while frames and frames[-1][1] == BAD_FRAME:
        frames = frames[:-1]
    return [(names.get(dso, dso).removesuffix(" (deleted)"), address) for dso, address in frames]


def comparable(sample: Printed, has_chains: bool) -> tuple[Frame, ...]:
    """Without callchains perf prints runtime addresses, so of user code only the DSO is compared."""
    frames = normalized(sample.frames)
    return tuple((dso, at if has_chains or dso == "[kernel]" else 0) for dso, at in frames)


def capture_of(path: Path) -> Capture:
    return read_recording(path, None, Locator())


def differing_classes(pairs: list[tuple[list[Frame], list[Frame]]]) -> Counter[str]:
    """Where stacks part: after how many frames, and in which DSO."""
    classes: Counter[str] = Counter()
    for mine, theirs in pairs:
        common = next((k for k, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b), min(len(mine), len(theirs)))
        what = "perf shorter" if common == len(theirs) else "ours shorter" if common == len(mine) else "differ"
        classes[f"{what} below {theirs[common - 1][0] if common else 'nothing'}"] += 1
    return classes


@pytest.mark.parametrize("options", [["-e", "cpu-clock", "-F", "1999", "-g"], ["-e", "cpu-clock", "-c", "700000", "-g"]])
def test_frame_pointer_recordings_are_equal(perf: str, record: Callable[..., Path], binaries: Path, options: list[str]) -> None:
    path = record("framed" + options[2], options, binaries / "framed")
    capture, theirs = capture_of(path), list(printed(perf, path))
    assert len(theirs) > 200
    assert len(capture.samples) == len(theirs)
    for sample, expected in enumerate(theirs):
        mine = ours(capture, sample)
        assert mine.head() == expected.head()
        assert mine.frames == normalized(expected.frames)
    assert {comm.comm for comm in theirs} >= {"framed", "Web 33 (x)", "k/2:1", ":7: /9 [0]"}


def test_stacks_that_end_where_a_thread_begins(record: Callable[..., Path], tmp_path: Path) -> None:
    """At -O0 every function keeps a frame pointer, so hardly a frame can be missing, in the main thread and in others."""
    (tmp_path / "spin.c").write_text(SPIN)
    subprocess.run(["gcc", "-O0", "-pthread", "spin.c", "-o", "spin"], cwd=tmp_path, check=True, capture_output=True)
    path = record("spin", ["-e", "cpu-clock", "-F", "1999", "-g"], tmp_path / "spin")
    capture = capture_of(path)
    states: dict[int, Counter[int]] = {}
    for row in range(len(capture.samples)):
        printed_sample = ours(capture, row)
        if any(name.endswith("/spin") for name, _ in printed_sample.frames):
            states.setdefault(printed_sample.tid, Counter())[int(capture.samples.state[row])] += 1
    assert len(states) == 2
    for counts in states.values():
        assert counts[StackState.COMPLETE] > 0.9 * counts.total() > 50


def test_children_by_fork_and_exec(perf: str, record: Callable[..., Path], binaries: Path) -> None:
    """perf keeps the mappings of before the exec, so only user frames of later samples can differ."""
    path = record("children", ["-e", "cpu-clock", "-F", "1999", "-g"], binaries / "framed", "fork")
    capture, theirs = capture_of(path), list(printed(perf, path))
    assert [ours(capture, row).head() for row in range(len(capture.samples))] == [sample.head() for sample in theirs]
    pairs = [(ours(capture, row).frames, normalized(sample.frames)) for row, sample in enumerate(theirs)]
    different = [pair for pair in pairs if pair[0] != pair[1]]
    print(differing_classes(different))
    assert len({sample.pid for sample in theirs}) == 3
    assert len(different) <= len(theirs) // 100


@pytest.mark.parametrize(
    "options",
    [
        ["-e", "cpu-clock,page-faults", "-g"],
        ["-e", "{cpu-clock,page-faults}:S"],
        ["-e", "cpu-clock,page-faults", "-d", "-W", "--sample-cpu", "--sample-identifier", "-F", "999"],
        ["-e", "task-clock", "--no-inherit", "-c", "500000"],
        ["-e", "cpu-clock", "--buildid-mmap", "-g"],
    ],
)
def test_events_periods_and_extra_fields(perf: str, record: Callable[..., Path], binaries: Path, options: list[str]) -> None:
    path = record("events", options, binaries / "framed")
    capture, theirs = capture_of(path), list(printed(perf, path))
    mine = [ours(capture, row) for row in range(len(capture.samples))]
    assert len(mine) > 50
    # A group record stands for several samples, and perf prints them in an order of its own.
    assert sorted(sample.head() for sample in mine) == sorted(sample.head() for sample in theirs)
    assert sum(sample.period for sample in mine) == sum(sample.period for sample in theirs)
    assert Counter(comparable(sample, "-g" in options) for sample in mine) == Counter(
        comparable(sample, "-g" in options) for sample in theirs
    )
    assert not any("longer or shorter" in note for note in capture.quality.notes)


@pytest.mark.alone
def test_system_wide(perf: str, record: Callable[..., Path], binaries: Path) -> None:
    path = record("wide", ["-a", "-e", "cpu-clock", "-F", "499", "-g"], binaries / "framed", "fork")
    capture, theirs = capture_of(path), list(printed(perf, path))
    mine = [ours(capture, row) for row in range(len(capture.samples))]
    assert len(mine) == len(theirs)
    known = [row for row, sample in enumerate(theirs) if sample.pid >= 0]
    assert [mine[row].head()[1:] for row in known] == [theirs[row].head()[1:] for row in known]
    names = [(mine[row].comm, theirs[row].comm) for row in known]
    assert sum(a != b for a, b in names) <= len(names) // 100
    different = [
        (m.frames, normalized(t.frames)) for m, t in zip(mine, theirs, strict=True) if m.frames != normalized(t.frames)
    ]
    print(differing_classes(different))
    assert len(different) <= len(theirs) // 100


def test_unwound_stacks_of_one_process(perf: str, record: Callable[..., Path], binaries: Path) -> None:
    """perf prints callers of unwound stacks one byte before their return address."""
    path = record("bare", ["-e", "cpu-clock", "-F", "1999", "--call-graph", "dwarf,16384"], binaries / "bare")
    capture, theirs = capture_of(path), list(printed(perf, path))
    assert [ours(capture, row).head() for row in range(len(capture.samples))] == [sample.head() for sample in theirs]
    different = []
    for row, expected in enumerate(theirs):
        stack = capture.stacks.frames_leaf_first(int(capture.samples.stack[row]))
        is_user_caller = [bool(capture.frames.is_return_address[f] and capture.frames.mode[f] == CpuMode.USER) for f in stack]
        mine = [(dso, at - caller) for (dso, at), caller in zip(ours(capture, row).frames, is_user_caller, strict=True)]
        if mine != normalized(expected.frames):
            different.append((mine, normalized(expected.frames)))
    classes = differing_classes(different)
    print(classes)
    # perf 6.1 has no call frame information for the vDSO and ends stacks there.
    del classes["perf shorter below [vdso]"]
    assert len(theirs) > 200
    assert classes.total() <= len(theirs) // 1000
    counts = capture.quality
    assert counts.complete > 0.98 * counts.samples
    assert capture.samples.state.tolist().count(StackState.COMPLETE) == counts.complete


def test_a_short_dump_is_marked(record: Callable[..., Path], binaries: Path) -> None:
    path = record("short", ["-e", "cpu-clock", "-F", "1999", "--call-graph", "dwarf,256"], binaries / "bare")
    quality = capture_of(path).quality
    assert quality.truncated > quality.samples // 4


def test_kernel_names_are_those_of_kallsyms(perf: str, record: Callable[..., Path], binaries: Path) -> None:
    path = record("kernel", ["-e", "cpu-clock", "-F", "1999", "-g"], binaries / "framed")
    capture = capture_of(path)
    kernel = [row for row in range(len(capture.frames)) if capture.frames.mode[row] == CpuMode.KERNEL]
    if not kernel or all(capture.frames.symbol[row] < 0 for row in kernel):
        pytest.skip("kernel addresses are hidden or were not sampled")
    done = subprocess.run(
        [perf, "script", "-i", str(path), "--no-inline", "-F", "ip,sym"], capture_output=True, check=True, text=True
    )
    pairs = (line.split(None, 1) for line in done.stdout.splitlines() if line.strip())
    theirs = {int(pair[0], 16): pair[1] for pair in pairs if len(pair) == 2}
    names = {int(capture.frames.offset[row]): capture.strings[capture.frames.symbol[row]] for row in kernel}
    exact = [row for row in kernel if not capture.frames.is_return_address[row]]
    compared = [int(capture.frames.offset[row]) for row in exact if int(capture.frames.offset[row]) in theirs]
    assert compared
    assert {at: names[at] for at in compared} == {at: theirs[at] for at in compared}


def test_a_killed_recorder(perf: str, binaries: Path, tmp_path: Path) -> None:
    path = tmp_path / "killed.data"
    command = [
        perf,
        "record",
        "-N",
        "-q",
        "-e",
        "cpu-clock",
        "-F",
        "1999",
        "-g",
        "-o",
        str(path),
        "--",
        str(binaries / "framed"),
    ]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as recorder:
        while not path.exists() or path.stat().st_size < 20_000:
            assert recorder.poll() is None
            time.sleep(0.001)
        recorder.kill()
    capture = read_recording(path, CaptureInfo(RunIdentity("s", "v", 0, RunMode.IMPORTED)), Locator())
    assert capture.quality.is_unfinished
    assert len(capture.samples) > 0
