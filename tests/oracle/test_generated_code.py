"""Code that is made at run time: its names against those that perf takes from the same tables."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from collectors.recording_file import read_recording
from profiler.model.capture import Capture
from profiler.model.dso import DsoKind
from symbolize.locate import Locator

pytestmark = [pytest.mark.perf, pytest.mark.beside]

# The code counts down with a frame pointer: push rbp; mov rbp, rsp; mov rcx, rdi; dec rcx; jnz -5; pop rbp; ret.
PROGRAM = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf9, 0x48, 0xff, 0xc9, 0x75, 0xfb, 0x5d, 0xc3};
static void *const at = (void *)0x100000000;
static void run(const char *first, const char *second, int is_listed) {
    char *memory = mmap(at, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    memcpy(memory, code, sizeof code);
    memcpy(memory + 64, code, sizeof code);
    if (is_listed) {
        char name[64];
        sprintf(name, "/tmp/perf-%d.map", getpid());
        FILE *map = fopen(name, "w");
        fprintf(map, "%lx 40 %s\n%lx 40 %s\nbroken line\n", (long)memory, first, (long)memory + 64, second);
        fclose(map);
    }
    for (int i = 0; i < 20; i++) {
        ((void (*)(long))memory)(10000000);
        ((void (*)(long))(memory + 64))(5000000);
    }
}
int main(int count, char **arguments) {
    (void)arguments;
    if (!fork()) { run("child hot(int)", "child;cold", 1); _exit(0); }
    if (!fork()) { run("", "", 0); _exit(0); }
    run("parent hot(int)", "parent::cold", count == 1);
    while (wait(0) > 0) ;
    return 0;
}
"""
DUMPING = r"""
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf9, 0x48, 0xff, 0xc9, 0x75, 0xfb, 0x5d, 0xc3};
static void load(int file, char *memory, const char *name, long number) {
    unsigned size = 16 + 40 + strlen(name) + 1 + sizeof code, head[] = {0, size, 0, 0, getpid(), getpid()};
    long body[] = {(long)memory, (long)memory, sizeof code, number};
    memcpy(memory, code, sizeof code);
    write(file, head, sizeof head);
    write(file, body, sizeof body);
    write(file, name, strlen(name) + 1);
    write(file, code, sizeof code);
}
int main(int count, char **arguments) {
    char path[200];
    sprintf(path, "%s/jit-%d.dump", arguments[count - 1], getpid());
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    unsigned header[] = {0x4A695444, 1, 40, 62, 0, getpid(), 0, 0, 0, 0};
    write(file, header, sizeof header);
    mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
    char *memory = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    load(file, memory, "replaced", 1);
    load(file, memory, "hot(int)", 2);
    load(file, memory + 64, "cold code", 3);
    for (int i = 0; i < 20; i++) {
        ((void (*)(long))memory)(10000000);
        ((void (*)(long))(memory + 64))(5000000);
    }
    return 0;
}
"""
SCRIPT = """
function hot(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) % 1000003; return s; }
function outer(n) { return hot(n) + hot(n + 1); }
let total = 0;
for (let k = 0; k < 400; k++) total += outer(100000);
console.log(total);
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "program.c").write_text(PROGRAM)
    command = ["gcc", "-O1", "-fno-omit-frame-pointer", "program.c", "-o", "program"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    return tmp_path / "program"


@pytest.fixture
def maps() -> Iterator[set[Path]]:
    """The tables that a test leaves are removed."""
    before = set(Path("/tmp").glob("perf-*.map"))
    made: set[Path] = set()
    yield made
    for path in made - before:
        path.unlink(missing_ok=True)


def record(perf: str, path: Path, *command: str | Path) -> Path:
    arguments = [perf, "record", "-N", "-q", "-e", "cpu-clock", "-F", "1999", "-g", "-o", str(path), "--"]
    subprocess.run([*arguments, *map(str, command)], check=True, capture_output=True, stdin=subprocess.DEVNULL)
    return path


def names_by_perf(perf: str, path: Path) -> Counter[tuple[int, str]]:
    """(pid, name) of the innermost frame of each sample that perf finds in a table."""
    command = [perf, "script", "-i", str(path), "-F", "pid,ip,sym,dso"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found: Counter[tuple[int, str]] = Counter()
    for sample in text.split("\n\n"):
        lines = [line for line in sample.splitlines() if line.strip()]
        if len(lines) > 1 and ".map)" in lines[1]:
            found[int(lines[0]), lines[1].split(None, 1)[1].rpartition(" (")[0]] += 1
    return found


def names_of(capture: Capture) -> Counter[tuple[int, str]]:
    """(pid, name) of the innermost frame of each sample whose code lies in anonymous memory; "" = no name."""
    found: Counter[tuple[int, str]] = Counter()
    pids = capture.threads.pid[capture.samples.thread].tolist()
    for pid, stack in zip(pids, capture.samples.stack.tolist(), strict=True):
        frame = int(capture.stacks.frame[stack])
        if capture.dsos[capture.frames.dso[frame]].kind == DsoKind.ANONYMOUS:
            symbol = int(capture.frames.symbol[frame])
            found[pid, capture.strings[symbol] if symbol >= 0 else ""] += 1
    return found


def test_names_of_each_process_are_its_own(perf: str, program: Path, tmp_path: Path, maps: set[Path]) -> None:
    """Three processes run code at the same addresses; the third wrote no table."""
    path = record(perf, tmp_path / "x.data", program)
    capture = read_recording(path, None, Locator())
    found = names_of(capture)
    pids = {pid for pid, _ in found}
    maps |= {Path(f"/tmp/perf-{pid}.map") for pid in pids}
    assert len(pids) == 3
    assert {name for _, name in found} == {"parent hot(int)", "parent::cold", "child hot(int)", "child;cold", ""}
    named = Counter({key: count for key, count in found.items() if key[1]})
    assert {(pid, name): count for (pid, name), count in names_by_perf(perf, path).items() if name != "[unknown]"} == named
    for kind in ("parent", "child"):
        assert len({pid for pid, name in named if name.startswith(kind)}) == 1
    assert (capture.stacks.prefix < range(len(capture.stacks))).all()
    assert capture.samples.weight.sum() == 500250 * len(capture.samples)
    assert set(capture.stacks.frame.tolist()) == set(range(len(capture.frames)))
    assert [note for note in capture.quality.notes if "generated code" in note] == []


def test_a_table_of_another_time_is_not_used(perf: str, program: Path, tmp_path: Path, maps: set[Path]) -> None:
    path = record(perf, tmp_path / "x.data", program)
    pids = {pid for pid, _ in names_of(read_recording(path, None, Locator()))}
    maps |= {Path(f"/tmp/perf-{pid}.map") for pid in pids}
    ended = path.stat().st_mtime
    for pid in pids:
        table = Path(f"/tmp/perf-{pid}.map")
        if table.exists():
            os.utime(table, (ended - 3600, ended - 3600))
    older = read_recording(path, None, Locator())
    assert {name for _, name in names_of(older)} == {""}
    notes = [note for note in older.quality.notes if "generated code" in note]
    assert len(notes) == 2
    assert all(note.endswith(".map is older than the recording") for note in notes)
    os.utime(path, (ended - 7200, ended - 7200))
    newer = read_recording(path, None, Locator())
    assert {name for _, name in names_of(newer)} == {""}
    assert sum("written after the recording, perhaps by another process" in note for note in newer.quality.notes) == 2


def test_javascript_has_the_names_that_perf_shows(perf: str, tmp_path: Path, maps: set[Path]) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    (tmp_path / "hot.js").write_text(SCRIPT)
    # Beside the table it writes a log into the working directory.
    log = ["--no-logfile-per-isolate", f"--logfile={tmp_path / 'v8.log'}"]
    path = record(perf, tmp_path / "x.data", node, "--perf-basic-prof", *log, tmp_path / "hot.js")
    capture = read_recording(path, None, Locator())
    found = names_of(capture)
    maps |= {Path(f"/tmp/perf-{pid}.map") for pid, _ in found}
    by_perf = names_by_perf(perf, path)
    assert by_perf.total() > 50
    assert sum(count for (_, name), count in found.items() if "hot " in name) > 50
    # Both take the code that was there last; perf cuts earlier code of which a part was written over.
    assert sum((found & by_perf).values()) >= 0.98 * by_perf.total()


def test_names_of_a_jitdump(perf: str, tmp_path: Path) -> None:
    """The program calls two functions in turns, of which the first takes twice as long."""
    (tmp_path / "dumping.c").write_text(DUMPING)
    command = ["gcc", "-O1", "-w", "-fno-omit-frame-pointer", "dumping.c", "-o", "dumping"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    path = record(perf, tmp_path / "x.data", tmp_path / "dumping", tmp_path)
    found = Counter({name: count for (_, name), count in names_of(read_recording(path, None, Locator())).items()})
    assert set(found) == {"hot(int)", "cold code"}
    assert found.total() > 50
    # Four standard errors of a count, and 3 % for what differs between the two beside their loops.
    allowed = 4 * math.sqrt(2 / 9 / found.total()) + 0.03
    assert found["hot(int)"] / found.total() == pytest.approx(2 / 3, abs=allowed)
