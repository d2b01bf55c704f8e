"""Unwinding against perf's own, frame by frame, on programs that are recorded here, and against a published recording."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from profiler.model.dso import Dso, DsoKind
from support.elf_programs import compile_program, load_image, tool_output
from support.elf_recordings import DwarfRecording, ScriptFrame, perf_script, read_dwarf_recording
from symbolize.elf.image import ElfImage
from symbolize.elf.symbol_table import SymbolTable, parse_symbol_table
from symbolize.locate import Locator
from symbolize.unwind.code_rules import CodeRules
from symbolize.unwind.code_sites import CodeSites
from symbolize.unwind.full_walk import FullWalk
from symbolize.unwind.levels import StackLevels
from symbolize.unwind.unwinder import EndReason, Unwinder, UnwoundStacks

SIGNALS = r"""
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/time.h>
volatile uint64_t sink;
__attribute__((noinline)) uint64_t spin(uint64_t n) {
    uint64_t x = n;
    for (uint64_t i = 0; i < n; i++) x = x * 6364136223846793005ull + 1;
    return x;
}
__attribute__((noinline)) void in_handler(int d) {
    if (d) { in_handler(d - 1); sink++; } else sink += spin(60000);
}
static void handler(int s) { in_handler(3); sink += s; }
__attribute__((noinline)) uint64_t work(int d, uint64_t n) {
    char b[64];
    memset(b, d, sizeof b);
    if (d) return work(d - 1, n) + b[d & 31];
    return spin(n);
}
int main(void) {
    struct sigaction a;
    memset(&a, 0, sizeof a);
    a.sa_handler = handler;
    sigaction(SIGALRM, &a, 0);
    struct itimerval t = {{0, 700}, {0, 700}};
    setitimer(ITIMER_REAL, &t, 0);
    for (int i = 0; i < 200; i++) sink += work(i % 9, 1000000);
    return 0;
}
"""

REALIGNED = r"""
#include <alloca.h>
#include <cstring>
typedef double quad __attribute__((vector_size(32)));
volatile double sink;
struct Large { double v[40]; };
__attribute__((noinline)) double use(quad* p, char* q, int n) {
    double s = 0;
    for (int k = 0; k < 300; k++)
        for (int i = 0; i < n; i++) s += p[i % 4][i & 3] + q[i % 16];
    return s;
}
__attribute__((noinline)) double aligned(int d, int n) {
    alignas(64) quad a[4];
    char* q = (char*)alloca(n + 16);
    memset(q, d, n);
    for (int i = 0; i < 4; i++) a[i] = quad{1.0 * d, 2, 3, 4};
    double r = use(a, q, n);
    if (d) r += aligned(d - 1, n + 3);
    return r + a[1][0];
}
__attribute__((noinline)) double many(Large a, int n) {
    alignas(64) quad t[4] = {};
    t[n & 3][0] = a.v[n & 31];
    return use(t, (char*)&a, n) + t[0][0];
}
int main() {
    Large s{};
    for (int i = 0; i < 1500; i++) { sink += aligned(i % 12, 30); sink += many(s, i % 40); }
}
"""

CONTAINERS = r"""
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>
volatile uint64_t sink;
__attribute__((noinline)) uint64_t leaf(uint64_t x) {
    for (int i = 0; i < 400; i++) x = x * 6364136223846793005ull + 1442695040888963407ull ^ (x >> 7);
    return x;
}
__attribute__((noinline)) uint64_t descend(int d, uint64_t x) {
    if (d == 0) return leaf(x);
    std::vector<uint64_t> v(8, x);
    uint64_t r = descend(d - 1, x + v[3]) + v[d & 7];
    std::sort(v.begin(), v.end());
    return r ^ v[0];
}
__attribute__((noinline)) uint64_t strings(uint64_t x) {
    std::map<std::string, int> m;
    for (int i = 0; i < 50; i++) m[std::to_string(x + i)] += i;
    return m.size();
}
static void worker(int n, int depth) {
    for (int i = 0; i < n; i++) { sink += descend(5 + i % depth, i); sink += strings(i); }
}
int main(int c, char** v) {
    int n = c > 1 ? atoi(v[1]) : 40000, depth = c > 2 ? atoi(v[2]) : 20;
    std::thread t(worker, n, depth);
    worker(n, depth);
    t.join();
}
"""

pytestmark = [pytest.mark.perf, pytest.mark.beside]


@dataclass(frozen=True)
class Unwound:
    """A recording, our stacks of its unwindable samples and perf's of the same."""

    recording: DwarfRecording
    rows: list[int]
    stacks: UnwoundStacks
    by_perf: list[list[ScriptFrame]]
    images: dict[int, ElfImage | None]
    symbols: dict[int, SymbolTable]

    def frames(self, at: int) -> list[tuple[int, str]]:
        """(file offset as perf prints it, path) leaf first; perf takes one off every caller, interrupted frames included."""
        paths = self.recording.paths
        stacks = self.stacks
        return [
            (
                int(stacks.offset[k]) - bool(stacks.is_return_address[k]),
                paths[stacks.dso[k]] if stacks.dso[k] >= 0 else "[unknown]",
            )
            for k in range(stacks.frame_start[at], stacks.frame_start[at + 1])
        ]

    def agrees(self, at: int) -> bool:
        ours, theirs = self.frames(at), self.by_perf[at]
        return len(ours) == len(theirs) and all(
            offset - frame.address in (0, 1) and path == frame.dso for (offset, path), frame in zip(ours, theirs, strict=True)
        )

    def passing_through(self, program: Path) -> list[int]:
        """Stacks with a frame of ``program``.  (Of the loader's start code, which has no call frame information, perf makes
        up callers.)"""
        return [at for at in range(len(self.rows)) if any(path == str(program) for _, path in self.frames(at))]


def images_of(recording: DwarfRecording) -> Callable[[int], ElfImage | None]:
    locator = Locator()
    paths = recording.paths

    def image(row: int) -> ElfImage | None:
        kind = DsoKind.VDSO if paths[row] == "[vdso]" else DsoKind.FILE
        return locator.image(Dso(paths[row], b"", kind))

    return image


def unwound(perf: str, path: Path) -> Unwound:
    recording = read_dwarf_recording(path)
    rows = recording.unwindable()
    image = images_of(recording)
    stacks = Unwinder(image).unwind(recording.dumps(rows), recording)
    scripted = perf_script(perf, path)
    assert len(scripted) == len(recording.samples)
    images = {row: image(row) for row in range(len(recording.paths))}
    symbols = {row: parse_symbol_table(image) for row, image in images.items() if image is not None}
    return Unwound(recording, rows, stacks, [scripted[row] for row in rows], images, symbols)


def record(perf: str, directory: Path, command: list[str], dump: str = "dwarf,16384", rate: int = 1500) -> Path:
    path = directory / "perf.data"
    options = ["-N", "-q", "-e", "cpu-clock", "-F", str(rate), "--call-graph", dump, "-o", str(path)]
    subprocess.run([perf, "record", *options, "--", *command], check=True, capture_output=True, stdin=subprocess.DEVNULL)
    return path


def differing(result: Unwound, program: Path) -> list[int]:
    """Stacks through ``program`` that perf unwinds otherwise.  Left aside is a thread that returns from a signal handler: it
    stands behind the last address that the rules of the trampoline cover, where perf gives up and the unwinder does not."""
    compared = [at for at in result.passing_through(program) if not returns_from_signal(result, at)]
    assert len(compared) >= 100
    return [at for at in compared if not result.agrees(at)]


def tolerated(result: Unwound) -> int:
    """One stack in a thousand, and at least one."""
    return max(1, len(result.rows) // 1000)


def returns_from_signal(result: Unwound, at: int) -> bool:
    first, end = result.stacks.frame_start[at : at + 2]
    return bool(end - first > 1 and not result.stacks.is_return_address[first + 1] and len(result.by_perf[at]) == 1)


def ended(result: Unwound, reason: EndReason, program: Path) -> float:
    """Share of the stacks through ``program`` that ended for ``reason``."""
    return float(np.mean(result.stacks.end_reason[result.passing_through(program)] == reason))


def names(result: Unwound, at: int) -> list[str]:
    """Symbol of each frame of one stack, looked up in the program's own table."""
    found = []
    stacks = result.stacks
    for k in range(stacks.frame_start[at], stacks.frame_start[at + 1]):
        image = result.images[int(stacks.dso[k])] if stacks.dso[k] >= 0 else None
        if image is None:
            found.append("")
            continue
        table = result.symbols[int(stacks.dso[k])]
        offset = np.array([stacks.offset[k] - np.uint64(stacks.is_return_address[k])], np.uint64)
        row = int(table.lookup(image.link_addresses(offset))[0])
        found.append(table.name(row) if row >= 0 else "")
    return found


@pytest.fixture(scope="module")
def containers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("containers")
    return compile_program(directory, "containers.cpp", CONTAINERS, ["-O2", "-g", "-pthread"])


@pytest.fixture(scope="module")
def container_stacks(perf: str, containers: Path, tmp_path_factory: pytest.TempPathFactory) -> Unwound:
    return unwound(perf, record(perf, tmp_path_factory.mktemp("recording"), [str(containers)]))


def test_cpp_program_with_threads_equals_perf(container_stacks: Unwound, containers: Path) -> None:
    assert len(differing(container_stacks, containers)) <= tolerated(container_stacks)
    assert ended(container_stacks, EndReason.THREAD_ENTRY, containers) >= 0.99


def test_both_walks_give_the_same_stacks(container_stacks: Unwound) -> None:
    recording, rows = container_stacks.recording, container_stacks.rows
    levels = StackLevels(len(rows))
    dumps = recording.dumps(rows)
    code = CodeRules(images_of(recording))
    sites = CodeSites(recording, code)
    space_keys = sites.space_keys(dumps.address_space)
    assert space_keys is not None
    FullWalk(dumps, space_keys, sites, code).run(np.arange(len(rows), dtype=np.int64), levels, 127)
    full, quick = levels.stacks(sites), container_stacks.stacks
    assert len(full.dso) > 1000
    for column in ("sample", "dso", "offset", "is_return_address", "frame_start", "end_reason"):
        assert np.array_equal(getattr(full, column), getattr(quick, column)), column


def test_signal_handlers_equal_perf(perf: str, tmp_path: Path) -> None:
    program = compile_program(tmp_path, "signals.c", SIGNALS, ["-O2", "-g"])
    result = unwound(perf, record(perf, tmp_path, [str(program)]))
    assert len(differing(result, program)) <= tolerated(result)
    through_handler = [at for at in range(len(result.rows)) if "in_handler" in names(result, at)]
    assert len(through_handler) >= 10
    for at in through_handler[:20]:
        found = names(result, at)
        handler = found.index("handler")
        # handler <- trampoline in libc <- the interrupted function, whose address no call precedes
        first = int(result.stacks.frame_start[at])
        assert not result.stacks.is_return_address[first + handler + 1]
        assert not result.stacks.is_return_address[first + handler + 2]
        assert found[-1] == "_start"


@pytest.mark.parametrize("options", [["-O2", "-mavx2"], ["-O3", "-mavx2", "-fno-omit-frame-pointer"], ["-O0", "-mavx"]])
def test_realigned_stacks_equal_perf(perf: str, tmp_path: Path, options: list[str]) -> None:
    program = compile_program(tmp_path, "realigned.cpp", REALIGNED, ["-g", *options])
    if "-O0" not in options:
        assert "DW_CFA_def_cfa_expression" in tool_output("readelf", "--debug-dump=frames", str(program))
    result = unwound(perf, record(perf, tmp_path, [str(program)], rate=2500))
    assert len(differing(result, program)) <= tolerated(result)
    assert ended(result, EndReason.THREAD_ENTRY, program) >= 0.99


def test_static_program_without_search_table_reaches_start(perf: str, tmp_path: Path) -> None:
    program = compile_program(tmp_path, "signals.c", SIGNALS, ["-O2", "-static", "-Wl,--no-eh-frame-hdr"])
    assert load_image(program).frame_header_segment is None
    result = unwound(perf, record(perf, tmp_path, [str(program)]))
    # perf needs the search table and gives up behind the innermost frame.
    assert np.mean([len(theirs) <= 1 for theirs in result.by_perf]) > 0.9
    assert ended(result, EndReason.THREAD_ENTRY, program) >= 0.99
    assert all("main" in names(result, at) for at in range(0, len(result.rows), 25) if "work" in names(result, at))


def test_short_dumps_give_prefixes_of_the_whole_stacks(container_stacks: Unwound) -> None:
    recording, rows = container_stacks.recording, container_stacks.rows
    whole = container_stacks.stacks
    dumps = recording.dumps(rows)
    short = Unwinder(images_of(recording)).unwind(replace(dumps, dump_bytes=np.minimum(dumps.dump_bytes, 256)), recording)
    cut = 0
    for at in range(len(rows)):
        theirs = whole.offset[whole.frame_start[at] : whole.frame_start[at + 1]]
        ours = short.offset[short.frame_start[at] : short.frame_start[at + 1]]
        assert np.array_equal(ours, theirs[: len(ours)])
        if len(ours) < len(theirs):
            cut += 1
            assert short.end_reason[at] == EndReason.DUMP_LIMIT
    assert cut > len(rows) / 2


def test_recording_with_a_short_dump_is_marked(perf: str, containers: Path, tmp_path: Path) -> None:
    result = unwound(perf, record(perf, tmp_path, [str(containers), "6000", "30"], dump="dwarf,256"))
    assert ended(result, EndReason.DUMP_LIMIT, containers) > 0.5
    for at in np.flatnonzero(result.stacks.end_reason == EndReason.DUMP_LIMIT).tolist():
        assert all(path != "[unknown]" for _, path in result.frames(at))


def test_program_started_by_a_shell_reaches_main(perf: str, containers: Path, tmp_path: Path) -> None:
    result = unwound(perf, record(perf, tmp_path, ["bash", "-c", f"{containers} 6000; true"], rate=4000))
    own = [
        at
        for at in range(len(result.rows))
        if any(path == str(containers) for _, path in result.frames(at))
        and result.stacks.end_reason[at] not in (EndReason.DUMP_LIMIT, EndReason.DEPTH_LIMIT)
    ]
    assert len(own) >= 100
    outermost = {at: result.frames(at)[-1][1] for at in own}
    complete = [at for at in own if result.stacks.end_reason[at] == EndReason.THREAD_ENTRY]
    assert len(complete) >= 0.99 * len(own)
    by_main = [at for at in complete if outermost[at] == str(containers)]
    assert len(by_main) >= 50
    assert all("main" in names(result, at) for at in by_main[::10])


def test_symbols_are_those_of_perf(perf: str, tmp_path: Path) -> None:
    program = compile_program(tmp_path, "signals.c", SIGNALS, ["-O2", "-g"])
    result = unwound(perf, record(perf, tmp_path, [str(program)]))
    compared = 0
    for at in range(0, len(result.rows), 10):
        for name, frame in zip(names(result, at), result.by_perf[at], strict=False):
            if frame.dso == str(program):
                compared += 1
                assert name == frame.symbol
    assert compared >= 100


def test_published_recording_of_a_static_program(corpus: Path) -> None:
    directory = corpus / "KDAB+perfparser" / "tests" / "auto" / "perfdata" / "vector_static_gcc"
    expected = json.loads((corpus / "EXPECTED" / "stacks.handed.vector_static_gcc.perf.data.json").read_text())["samples"]
    recording = read_dwarf_recording(directory / "perf.data")
    binary = load_image(directory / "vector_static_gcc_v9.1.0")
    own = {row for row, path in enumerate(recording.paths) if path.endswith("vector_static_gcc_v9.1.0")}
    rows = recording.unwindable()
    stacks = Unwinder(lambda row: binary if row in own else None).unwind(recording.dumps(rows), recording)
    by_time = {f"{sample.time // 10**9}.{sample.time % 10**9:09d}": at for at, sample in enumerate(recording.samples)}
    compared = 0
    for sample in expected:
        wanted = [int(frame["addr"], 16) for frame in sample["frames"] if not frame["funcs"][-1]["kernel"]]
        row = by_time[sample["time"]]
        if row not in rows or not wanted:
            continue
        at = rows.index(row)
        picked = slice(int(stacks.frame_start[at]), int(stacks.frame_start[at + 1]))
        lookup = stacks.offset[picked] - stacks.is_return_address[picked].astype(np.uint64)
        assert binary.link_addresses(lookup).tolist() == wanted
        compared += 1
    assert compared >= 30
