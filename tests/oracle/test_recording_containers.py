"""Fresh recordings in every container: samples, weights, threads and frames as `perf script` prints them."""

from __future__ import annotations

import gzip
import json
import lzma
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import zstandard

from collectors.recording_file import read_recording
from profiler.model.capture import Capture
from symbolize.locate import Locator

pytestmark = [pytest.mark.perf, pytest.mark.beside]

PROGRAM = r"""
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
static void work(int ms) {
    struct timespec from, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    do {
        for (int i = 0; i < 40; i++) sink += down(i % 23, i);
        char *memory = malloc(300000);
        memset(memory, 1, 300000);
        sink += memory[sink % 300000];
        free(memory);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while ((now.tv_sec - from.tv_sec) * 1000 + (now.tv_nsec - from.tv_nsec) / 1000000 < ms);
}
static void *thread(void *name) { prctl(PR_SET_NAME, name); work(120); return 0; }
int main(int count, char **arguments) {
    pthread_t threads[2];
    pthread_create(&threads[0], 0, thread, "worker 1");
    pthread_create(&threads[1], 0, thread, "worker (2)");
    work(count > 1 ? atoi(arguments[1]) : 100);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    if (!fork()) { work(60); _exit(0); }
    wait(0);
    return 0;
}
"""
HEAD = re.compile(r"^\s*(.*?)\s+(-?\d+)/(-?\d+)\s+(\d+)\.(\d{9}):\s+(\d+)\s+(\S+):\s*$")
FRAME_POINTERS = ["-e", "cpu-clock", "-F", "1999", "-g"]
TWO_EVENTS = ["-e", "cpu-clock,page-faults", "-F", "999", "-g"]
STACK_DUMPS = ["-e", "cpu-clock", "-F", "499", "--call-graph", "dwarf,8192"]


class PrintedSample(NamedTuple):
    """``frames``: (DSO, offset) from the innermost outward."""

    comm: str
    pid: int
    tid: int
    time_ns: int
    period: int
    event: str
    frames: tuple[tuple[str, int], ...]


class Recorder:
    """Records the program in a container of one's choice."""

    def __init__(self, perf: str, folder: Path) -> None:
        self.perf = perf
        self._folder = folder
        self.program = folder / "program"
        (folder / "program.c").write_text(PROGRAM)
        command = ["gcc", "-O1", "-g", "-pthread", "-fno-omit-frame-pointer", "program.c", "-o", "program"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)

    def in_file(self, name: str, *options: str) -> Path:
        """A file, or a directory with ``--threads``."""
        path = self._folder / name
        command = [self.perf, "record", "-N", "-q", *options, "-o", str(path), "--", str(self.program)]
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, text=True, check=False)
        if done.returncode and "--threads" in options and "unknown option" in done.stderr:
            pytest.skip("this perf writes no directories")
        assert done.returncode == 0, done.stderr
        return path

    def in_pipe(self, name: str, *options: str) -> Path:
        path = self._folder / name
        with path.open("wb") as stream:
            command = [self.perf, "record", "-N", "-q", *options, "-o", "-", "--", str(self.program)]
            done = subprocess.run(command, stdout=stream, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False)
        assert done.returncode == 0, done.stderr
        assert path.read_bytes()[8:16] == b"\x10\0\0\0\0\0\0\0"
        return path

    def printed(self, path: Path) -> list[PrintedSample]:
        """What perf reads out of the same recording."""
        fields = "comm,pid,tid,time,period,event,ip,dso"
        command = [self.perf, "script", "-i", str(path), "--no-inline", "--ns", "-F", fields]
        done = subprocess.run(command, capture_output=True, check=True, text=True, stdin=subprocess.DEVNULL)
        samples = []
        for block in done.stdout.split("\n\n"):
            head, *frames = block.strip("\n").split("\n")
            if match := HEAD.match(head):
                comm, pid, tid, seconds, nanoseconds, period, event = match.groups()
                time_ns = int(seconds) * 10**9 + int(nanoseconds)
                stack = tuple(_frame(line) for line in frames)
                samples.append(PrintedSample(comm, int(pid), int(tid), time_ns, int(period), event, stack))
        return samples


def _frame(line: str) -> tuple[str, int]:
    """Of recordings of the pipe mode perf prints the symbol too."""
    address, _, rest = line.strip().partition(" ")
    return rest[rest.rindex("(") + 1 : -1].replace("[kernel.kallsyms]", "[kernel]"), int(address, 16)


@pytest.fixture(scope="module")
def recorder(perf: str, tmp_path_factory: pytest.TempPathFactory) -> Recorder:
    return Recorder(perf, tmp_path_factory.mktemp("containers"))


def capture_of(path: Path) -> Capture:
    return read_recording(path, None, Locator())


def samples_of(capture: Capture) -> list[PrintedSample]:
    samples, threads, frames = capture.samples, capture.threads, capture.frames
    found = []
    for row in range(len(samples)):
        thread = int(samples.thread[row])
        stack = capture.stacks.frames_leaf_first(int(samples.stack[row]))
        found.append(
            PrintedSample(
                capture.strings[threads.thread_name[thread]],
                int(threads.pid[thread]),
                int(threads.tid[thread]),
                int(samples.time_ns[row]),
                int(samples.weight[row]),
                capture.events[samples.event[row]].name,
                tuple((capture.dsos[frames.dso[frame]].path, int(frames.offset[frame])) for frame in stack),
            )
        )
    return found


def assert_equal(capture: Capture, theirs: list[PrintedSample], *, with_frames: bool = True) -> None:
    """perf orders samples of one moment by file position, so equal times may come in either order."""
    ours = samples_of(capture)
    assert len(theirs) > 150
    assert [sample[:6] for sample in sorted(ours)] == [sample[:6] for sample in sorted(theirs)]
    assert {"worker 1", "worker (2)", "program"} <= {sample.comm for sample in ours}
    assert len({sample.pid for sample in ours}) == 2
    if with_frames:
        assert sorted(ours) == sorted(theirs)
    assert not capture.quality.is_unfinished
    assert capture.quality.lost_samples == 0
    assert capture.quality.skipped_records == ()


@pytest.mark.parametrize("options", [FRAME_POINTERS, TWO_EVENTS], ids=["one event", "two events"])
@pytest.mark.parametrize("compression", [[], ["-z"]], ids=["plain", "z"])
def test_pipe_mode(recorder: Recorder, options: list[str], compression: list[str]) -> None:
    path = recorder.in_pipe("p.data", *options, *compression)
    assert_equal(capture_of(path), recorder.printed(path))


@pytest.mark.parametrize("options", [FRAME_POINTERS, TWO_EVENTS], ids=["one event", "two events"])
def test_compressed_records(recorder: Recorder, options: list[str]) -> None:
    path = recorder.in_file("z.data", *options, "-z")
    assert_equal(capture_of(path), recorder.printed(path))


def test_compressed_stack_dumps(recorder: Recorder) -> None:
    """Each record is larger than what the decompressor hands out at once, and none is lost."""
    for path in (recorder.in_file("zd.data", *STACK_DUMPS, "-z"), recorder.in_pipe("pzd.data", *STACK_DUMPS, "-z")):
        assert_equal(capture_of(path), recorder.printed(path), with_frames=False)


@pytest.mark.parametrize("options", [[], ["-z"]], ids=["plain", "z"])
def test_directories(recorder: Recorder, options: list[str], tmp_path: Path) -> None:
    path = recorder.in_file(str(tmp_path / "d"), *FRAME_POINTERS, "--threads", *options)
    assert path.is_dir()
    assert_equal(capture_of(path), recorder.printed(path))


def test_files_that_are_compressed_as_a_whole(recorder: Recorder, tmp_path: Path) -> None:
    methods: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "xz": lzma.compress, "zst": zstandard.compress}
    for plain in (recorder.in_file("plain.data", *FRAME_POINTERS), recorder.in_pipe("plain.p.data", *FRAME_POINTERS, "-z")):
        theirs = recorder.printed(plain)
        for suffix, pack in methods.items():
            packed = tmp_path / f"perf.data.{suffix}"
            packed.write_bytes(pack(plain.read_bytes()))
            assert_equal(capture_of(packed), theirs)


def test_facts_of_a_pipe_are_those_of_a_file(recorder: Recorder) -> None:
    in_file, in_pipe = (
        capture_of(make(f"facts-{row}.data", *FRAME_POINTERS)) for row, make in enumerate((recorder.in_file, recorder.in_pipe))
    )
    assert in_file.info.host == in_pipe.info.host
    assert in_file.info.command == in_pipe.info.command == (str(recorder.program),)
    assert in_file.events == in_pipe.events
    assert in_file.info.perf.perf_version == in_pipe.info.perf.perf_version != ""


def test_standard_input(recorder: Recorder, tmp_path: Path) -> None:
    """`perf record -o - | slotscope report -`, each a process of its own; the total is perf's sum of periods."""
    path = recorder.in_pipe("stdin.data", *FRAME_POINTERS)
    total = sum(sample.period for sample in recorder.printed(path))
    command = [sys.executable, "-m", "profiler.cli.main", "report", "-", "--format", "json"]
    root = Path(__file__).resolve().parent.parent.parent
    with subprocess.Popen(["cat", str(path)], stdout=subprocess.PIPE) as cat:
        done = subprocess.run(command, stdin=cat.stdout, capture_output=True, text=True, check=True, cwd=root)
    assert json.loads(done.stdout)["total"] == total


@pytest.mark.parametrize(
    ("is_pipe", "compression"),
    [
        pytest.param(False, [], id="file-plain", marks=pytest.mark.full),
        pytest.param(False, ["-z"], id="file-z"),
        pytest.param(True, [], id="pipe-plain"),
        pytest.param(True, ["-z"], id="pipe-z", marks=pytest.mark.full),
    ],
)
def test_a_recorder_that_is_killed(recorder: Recorder, compression: list[str], is_pipe: bool, tmp_path: Path) -> None:
    """What perf had written is used, to the last whole record; a file is known to be unfinished."""
    path = tmp_path / "killed.data"
    output = "-" if is_pipe else str(path)
    command = [
        recorder.perf,
        "record",
        "-N",
        "-q",
        *FRAME_POINTERS,
        *compression,
        "-o",
        output,
        "--",
        str(recorder.program),
        "2000",
    ]
    enough = 20_000 if not compression else 5_000
    with path.open("wb") as stream:
        target = stream if is_pipe else subprocess.DEVNULL
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=target, stderr=subprocess.DEVNULL) as process:
            while path.stat().st_size < enough:
                assert process.poll() is None
                time.sleep(0.001)
            process.send_signal(signal.SIGKILL)
    capture = capture_of(path)
    assert len(capture.samples) > 0
    assert capture.quality.is_unfinished or is_pipe
    assert not any("not finished" in note for note in capture.quality.notes)


def test_a_copy_that_ends_early(recorder: Recorder, tmp_path: Path) -> None:
    """The samples before the cut are those that perf printed of the whole; names and mappings may lie behind the cut, as
    perf writes what each processor had to say in turn."""
    for name, whole in (
        ("pipe", recorder.in_pipe("early.p.data", *FRAME_POINTERS)),
        ("z", recorder.in_file("early.z.data", *FRAME_POINTERS, "-z")),
    ):
        theirs = {sample[1:6] for sample in recorder.printed(whole)}
        content = whole.read_bytes()
        cut = tmp_path / f"{name}.cut"
        cut.write_bytes(content[: len(content) * 2 // 3 + 1])
        capture = capture_of(cut)
        ours = {sample[1:6] for sample in samples_of(capture)}
        assert 0 < len(ours) < len(theirs)
        assert ours <= theirs
        assert capture.quality.is_unfinished
