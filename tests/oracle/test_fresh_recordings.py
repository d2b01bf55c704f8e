"""Fresh recordings of programs whose address space changes while they run: samples, threads and frames as perf has them, and
the same from perf's text."""

from __future__ import annotations

import io
import subprocess
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from collectors.importers.perf_script.reader import read_perf_script
from collectors.recording_file import imported_info, read_recording
from profiler.analysis.attribution.apply_symbols import apply_symbols, frames_by_dso
from profiler.model.capture import Capture
from profiler.model.frame_table import CpuMode
from support.perf_script_text import BAD_ADDRESS, Frame, PrintedSample, printed_samples
from symbolize.function_key import function_key
from symbolize.locate import Locator
from symbolize.symbolizer import Symbolizer

pytestmark = [pytest.mark.perf, pytest.mark.beside]

PLUGIN = r"""
static volatile unsigned long sink;
__attribute__((noinline)) unsigned long NAME(int depth) {
    for (int i = 0; i < 20000; i++) sink += i * sink;
    return depth ? NAME(depth - 1) + 1 : sink;
}
"""
PROGRAM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long sink;
__attribute__((noinline)) unsigned long leaf(unsigned long x) { for (int i = 0; i < 400; i++) x = x * 31 + i; return x; }
__attribute__((noinline)) unsigned long down(int depth, unsigned long x) {
    return depth ? down(depth - 1, x + 1) + depth : leaf(x);
}
static long spent_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
__attribute__((noinline)) static void work(int ms) {
    for (long end = spent_ms() + ms; spent_ms() < end;) for (int i = 0; i < 40; i++) sink += down(i % 23, i);
}
static void *thread(void *name) { prctl(PR_SET_NAME, name); work(60); return 0; }
static void threads(void) {
    pthread_t all[3];
    char *names[] = {"a b [c] 12", "Web 33 (x)", "k/2:1"};
    for (int i = 0; i < 3; i++) pthread_create(&all[i], 0, thread, names[i]);
    prctl(PR_SET_NAME, ":7: /9");
    work(60);
    for (int i = 0; i < 3; i++) pthread_join(all[i], 0);
}
static void plugins(const char *first, const char *second) {
    for (long end = spent_ms() + 150, turn = 0; spent_ms() < end; turn++) {
        void *library = dlopen(turn % 2 ? second : first, RTLD_NOW);
        unsigned long (*call)(int) = (unsigned long (*)(int))dlsym(library, turn % 2 ? "second" : "first");
        sink += call(5);
        dlclose(library);
    }
}
static void on_signal(int number) { (void)number; sink += down(9, 1); }
static void handlers(void) {
    struct itimerval every = {{0, 300}, {0, 300}};
    signal(SIGPROF, on_signal);
    setitimer(ITIMER_PROF, &every, 0);
    work(150);
}
static void family(char **arguments) {
    if (!fork()) { work(60); _exit(0); }
    if (!fork()) { prctl(PR_SET_NAME, "before exec"); work(60); execl(arguments[0], arguments[0], "plain", (char *)0); }
    work(60);
    while (wait(0) > 0) ;
}
int main(int count, char **arguments) {
    const char *mode = count > 1 ? arguments[1] : "plain";
    if (!strcmp(mode, "plain")) work(120);
    if (!strcmp(mode, "threads")) threads();
    if (!strcmp(mode, "plugins")) plugins(arguments[2], arguments[3]);
    if (!strcmp(mode, "handlers")) handlers();
    if (!strcmp(mode, "family")) family(arguments);
    if (!strcmp(mode, "unlinked")) { unlink(arguments[0]); work(120); }
    return 0;
}
"""
FRAME_POINTERS = ("-g",)
DWARF = ("--call-graph", "dwarf,16384")
# Data mappings have names for perf alone; a broken chain of frame pointers may point there.
_DATA_MAPPINGS = ("//anon", "[heap]", "[stack]")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs "framed" and "bare" (with and without frame pointers), another build "framed2", and two plugins."""
    folder = tmp_path_factory.mktemp("fresh recordings")
    (folder / "program.c").write_text(PROGRAM)
    (folder / "plugin.c").write_text(PLUGIN)
    framed = ["-O2", "-g", "-pthread", "-fno-omit-frame-pointer"]
    for name, options in (("framed", framed), ("framed2", [*framed, "-O1"]), ("bare", ["-O2", "-g", "-pthread"])):
        subprocess.run(["gcc", *options, "program.c", "-o", name], cwd=folder, check=True, capture_output=True)
    for name in ("first", "second"):
        command = ["gcc", *framed, "-shared", "-fPIC", f"-DNAME={name}", "plugin.c", "-o", f"{name}.so"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder


@dataclass(frozen=True)
class Recorded:
    """One recording, as slotscope and as perf has it, in one order; ``text`` is perf's with names."""

    capture: Capture
    mine: list[PrintedSample]
    theirs: list[PrintedSample]
    path: Path

    def heads(self) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
        """Comm, pid, tid, time, period and event of every sample, as both have them."""
        both = [[(s.comm, s.pid, s.tid, s.time_ns, s.period, s.event) for s in samples] for samples in (self.mine, self.theirs)]
        return both[0], both[1]

    def differences(self) -> Counter[str]:
        """Stacks that are not equal, by how and where they part."""
        return differences_of(zip(self.mine, self.theirs, strict=True))


def differences_of(pairs: Iterable[tuple[PrintedSample, PrintedSample]]) -> Counter[str]:
    """Stacks, ours and perf's, that are not equal, by how and where they part."""
    classes: Counter[str] = Counter()
    for one, other in pairs:
        mine, theirs = one.frames, _comparable(other.frames)
        if mine == theirs or (not theirs and len(mine) == 1):
            continue
        common = next((k for k, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b), min(len(mine), len(theirs)))
        what = "perf shorter" if common == len(theirs) else "ours shorter" if common == len(mine) else "differ"
        classes[f"{what} below {theirs[common - 1][0].rsplit('/', 1)[-1] if common else 'nothing'}"] += 1
    return classes


def _comparable(frames: Sequence[Frame]) -> list[Frame]:
    """Without the mark with which perf ends some stacks."""
    known = [frame for frame in frames if frame[1] != BAD_ADDRESS]
    return [("[unknown]" if dso in _DATA_MAPPINGS else dso, at) for dso, at in known]


def record(perf: str, path: Path, options: Sequence[str], *command: Path | str) -> Recorded:
    """Records a command; both sides in the order of time."""
    arguments = [perf, "record", "-N", "-q", "-e", "cpu-clock", "-F", "1999", "-o", str(path), *options, "--"]
    subprocess.run([*arguments, *map(str, command)], check=True, capture_output=True, stdin=subprocess.DEVNULL)
    fields = "comm,pid,tid,time,period,event,ip,dso"
    printed = subprocess.run(
        [perf, "script", "-i", str(path), "--no-inline", "--ns", "-F", fields], check=True, capture_output=True, text=True
    )
    capture = read_recording(path, None, Locator())
    is_dwarf = "--call-graph" in options
    mine = [_ours(capture, row, is_dwarf) for row in range(len(capture.samples))]
    theirs = list(printed_samples(printed.stdout.splitlines()))
    key = PrintedSample.sort_key
    return Recorded(capture, sorted(mine, key=lambda s: key(s)[:3]), sorted(theirs, key=lambda s: key(s)[:3]), path)


def _ours(capture: Capture, sample: int, is_dwarf: bool) -> PrintedSample:
    """perf prints callers of unwound stacks one byte before their return address."""
    samples, threads, frames = capture.samples, capture.threads, capture.frames
    thread = int(samples.thread[sample])
    shown = []
    for row in capture.stacks.frames_leaf_first(int(samples.stack[sample])):
        before = is_dwarf and bool(frames.is_return_address[row] and frames.mode[row] == CpuMode.USER)
        shown.append((capture.dsos[frames.dso[row]].path, int(frames.offset[row]) - before))
    return PrintedSample(
        capture.strings[threads.thread_name[thread]],
        int(threads.tid[thread]),
        -1,
        int(samples.time_ns[sample]),
        int(samples.weight[sample]),
        capture.events[samples.event[sample]].name,
        False,
        shown,
        int(threads.pid[thread]),
    )


def assert_equal(recorded: Recorded, least_samples: int, most_differing: float = 0.0) -> Counter[str]:
    """All samples equal, and the frames of all but a share of them; the classes of those that differ are printed."""
    mine, theirs = recorded.heads()
    assert mine == theirs
    assert len(mine) >= least_samples
    differences = recorded.differences()
    print(recorded.path.name, len(mine), "samples, stacks that differ:", dict(differences))
    assert differences.total() <= most_differing * len(mine)
    return differences


@pytest.mark.parametrize("mode", ["plain", "threads", "handlers"])
def test_programs_of_one_image(perf: str, folder: Path, tmp_path: Path, mode: str) -> None:
    recorded = record(perf, tmp_path / f"{mode}.data", FRAME_POINTERS, folder / "framed", mode)
    assert_equal(recorded, 150)
    if mode == "threads":
        assert {sample.comm for sample in recorded.mine} >= {"a b [c] 12", "Web 33 (x)", "k/2:1", ":7: /9"}


@pytest.mark.parametrize("mode", ["plain", "threads"])
def test_unwound_programs_of_one_image(perf: str, folder: Path, tmp_path: Path, mode: str) -> None:
    """perf 6.1 has no call frame information for the vDSO and ends stacks there."""
    recorded = record(perf, tmp_path / f"{mode}.data", DWARF, folder / "bare", mode)
    differences = assert_equal(recorded, 150, 0.05)
    del differences["perf shorter below [vdso]"]
    assert differences.total() <= len(recorded.mine) // 200


def test_unwinding_through_signal_handlers(perf: str, folder: Path, tmp_path: Path) -> None:
    """Both pass the frame that the kernel makes for a handler; below it the interrupted function's own address is shown."""
    recorded = record(perf, tmp_path / "handlers.data", DWARF, folder / "bare", "handlers")
    differences = assert_equal(recorded, 100, 0.1)
    del differences["perf shorter below [vdso]"]
    assert differences.total() <= len(recorded.mine) // 20


def test_libraries_that_come_and_go(perf: str, folder: Path, tmp_path: Path) -> None:
    """Two libraries take turns, mostly at one address: every sample belongs to the one that was there at its time."""
    recorded = record(
        perf, tmp_path / "plugins.data", FRAME_POINTERS, folder / "framed", "plugins", folder / "first.so", folder / "second.so"
    )
    assert_equal(recorded, 150)
    innermost = Counter(Path(sample.frames[0][0]).name for sample in recorded.mine if sample.frames)
    assert min(innermost["first.so"], innermost["second.so"]) > 20


def test_children_by_fork_and_exec(perf: str, folder: Path, tmp_path: Path) -> None:
    """perf keeps the mappings of before an exec, so stacks that lost their way may differ; few do."""
    recorded = record(perf, tmp_path / "family.data", FRAME_POINTERS, folder / "framed", "family")
    assert_equal(recorded, 200, 0.01)
    assert len({sample.pid for sample in recorded.mine}) == 3


def test_a_binary_that_is_removed_while_it_runs(perf: str, folder: Path, tmp_path: Path) -> None:
    program = tmp_path / "unlinked program"
    program.write_bytes((folder / "framed").read_bytes())
    program.chmod(0o755)
    recorded = record(perf, tmp_path / "unlinked.data", FRAME_POINTERS, program, "unlinked")
    assert_equal(recorded, 100)
    assert str(program) in {dso.path for dso in recorded.capture.dsos}


def test_two_builds_at_one_path(perf: str, folder: Path, tmp_path: Path) -> None:
    """The mapping records tell the builds apart when they hold build IDs; perf's lines cannot, but have the same addresses."""
    program = tmp_path / "program"
    script = f"cp '{folder}/framed' '{program}'; '{program}'; rm '{program}'; cp '{folder}/framed2' '{program}'; '{program}'"
    recorded = record(perf, tmp_path / "builds.data", [*FRAME_POINTERS, "--buildid-mmap"], "sh", "-c", script)
    assert_equal(recorded, 200, 0.01)
    build_ids = {dso.build_id for dso in recorded.capture.dsos if dso.path == str(program)}
    expected = {_build_id(folder / "framed"), _build_id(folder / "framed2")}
    assert build_ids == expected


def _build_id(path: Path) -> bytes:
    notes = subprocess.run(["readelf", "-n", str(path)], check=True, capture_output=True, text=True).stdout
    return bytes.fromhex(notes.split("Build ID:")[1].split()[0])


def test_unwound_stacks_after_an_exec_through_a_shell(perf: str, folder: Path, tmp_path: Path) -> None:
    """perf computes where a library's call frame information lies from all mappings that the process ever had, so after an exec
    it loses what lies below the C library.  Where it does not, both are equal; what it has is a beginning of ours."""
    recorded = record(perf, tmp_path / "shell.data", DWARF, "sh", "-c", f"'{folder}/bare' plain; '{folder}/bare' threads")
    mine, theirs = recorded.heads()
    assert mine == theirs
    differences = recorded.differences()
    print(len(mine), "samples, stacks that differ:", dict(differences))
    cut = sum(count for kind, count in differences.items() if kind.startswith("perf shorter"))
    assert differences.total() - cut <= len(mine) // 50
    bare = [row for row, sample in enumerate(recorded.mine) if any(dso.endswith("/bare") for dso, _ in sample.frames)]
    assert len(bare) > 200
    assert recorded.capture.quality.complete > 0.95 * len(bare)


@pytest.mark.alone
def test_all_cpus(perf: str, folder: Path, tmp_path: Path) -> None:
    """perf prints samples of tasks that are ending with pid and tid -1; the idle tasks have pid 0 and kernel frames only.  The
    stacks that differ part in user code, by mappings of before an exec, which only perf keeps."""
    recorded = record(perf, tmp_path / "wide.data", ["-a", *FRAME_POINTERS], folder / "framed", "family")
    mine, theirs = recorded.heads()
    assert Counter(head[3:] for head in mine) == Counter(head[3:] for head in theirs)
    pairs = [
        (m, t)
        for m, t in zip(recorded.mine, recorded.theirs, strict=True)
        if t.pid > 0 and (m.time_ns, m.tid) == (t.time_ns, t.tid)
    ]
    assert len(pairs) >= 0.9 * sum(sample.pid > 0 for sample in recorded.theirs)
    assert sum(m.comm != t.comm for m, t in pairs) <= len(pairs) // 100
    # Code in memory that has a file's name keeps its runtime addresses, under which its writer tells its symbols.
    in_memory = sum(any(dso.startswith("/memfd:") for dso, _ in m.frames) for m, _ in pairs)
    differences = differences_of((m, t) for m, t in pairs if not any(dso.startswith("/memfd:") for dso, _ in m.frames))
    print(len(mine), "samples,", len(pairs), "of processes, stacks that differ:", {"memfd": in_memory, **differences})
    assert not any(kind.startswith("ours shorter") for kind in differences)
    assert differences.total() <= len(pairs) // 200
    idle = [sample for sample in recorded.mine if sample.pid == 0 and sample.tid == 0]
    assert {sample.comm for sample in idle} <= {"swapper"}
    assert all(dso.startswith("[") for sample in idle for dso, _ in sample.frames)


@pytest.mark.parametrize(
    ("options", "binary", "mode"),
    [(FRAME_POINTERS, "framed", "threads"), (FRAME_POINTERS, "framed", "family"), (DWARF, "bare", "threads")],
)
def test_the_text_gives_the_same_names_and_weights(
    perf: str, folder: Path, tmp_path: Path, options: Sequence[str], binary: str, mode: str
) -> None:
    recorded = record(perf, tmp_path / "x.data", options, folder / binary, mode)
    command = [perf, "script", "-i", str(recorded.path), "--no-inline", "--ns", "-F", "+pid"]
    text = subprocess.run(command, check=True, capture_output=True).stdout
    read = read_perf_script(io.BytesIO(text), "text", imported_info(recorded.path))
    assert read.quality.notes == ()
    printed, kept = _thread_samples(read), _thread_samples(recorded.capture)
    assert [row[1:] for row in printed] == [row[1:] for row in kept]
    # The text tells the name of a process only where its first thread has a sample.
    assert sum(a[0] != b[0] for a, b in zip(printed, kept, strict=True)) <= len(kept) // 20
    assert [(event.name, event.unit) for event in read.events] == [
        (event.name, event.unit) for event in recorded.capture.events
    ]
    ours, theirs = _named_stacks(recorded.capture), _named_stacks(read)
    named = [(a, b) for a, b in zip(ours, theirs, strict=True) if len(a) == len(b)]
    assert len(named) >= 0.95 * len(ours)
    frames = [(a, b) for mine, printed in named for a, b in zip(mine, printed, strict=True) if b]
    different = Counter((a, b) for a, b in frames if a != b)
    print(len(frames), "frames, names that differ:", different.most_common(10))
    assert different.total() <= len(frames) // 100


def _thread_samples(capture: Capture) -> list[tuple[object, ...]]:
    threads, samples = capture.threads, capture.samples
    rows = zip(
        (capture.strings[name] for name in threads.process_name[samples.thread].tolist()),
        threads.pid[samples.thread].tolist(),
        threads.tid[samples.thread].tolist(),
        (capture.strings[name] for name in threads.thread_name[samples.thread].tolist()),
        samples.time_ns.tolist(),
        samples.weight.tolist(),
        strict=True,
    )
    return sorted(rows, key=lambda row: (row[4], row[2]))


def _named_stacks(capture: Capture) -> list[list[str]]:
    """The key of every physical frame's function, innermost first, by time and thread; "" = no name."""
    symbolizer = Symbolizer(Locator(), None)
    frames = capture.frames
    answers = {
        dso: symbolizer.symbolize(capture.dsos[dso], frames.offset[rows], frames.is_return_address[rows])
        for dso, rows in frames_by_dso(capture).items()
    }
    symbolized = apply_symbols(capture, answers, lambda name: (function_key(name).key, ""))
    outermost = symbolized.chains.function[symbolized.chains.start[1:] - 1].tolist()
    functions = [symbolized.functions[row] for row in outermost]
    names = ["" if function.name_source.name == "UNRESOLVED" else function.key for function in functions]
    tids, times = capture.threads.tid[capture.samples.thread].tolist(), capture.samples.time_ns.tolist()
    rows = sorted(range(len(times)), key=lambda row: (times[row], tids[row]))
    return [[names[frame] for frame in capture.stacks.frames_leaf_first(int(capture.samples.stack[row]))] for row in rows]
