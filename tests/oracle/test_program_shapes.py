"""Recordings of programs that profilers are known to get wrong: callers that nothing returns to, sleepers, recursion through
several functions, leaves without a frame, processes whose first thread does nothing."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from collectors.recording_file import read_recording
from profiler.cli.main import main
from profiler.model.sample_table import StackState
from support.elf_programs import load_image, tool_output
from symbolize.locate import Locator

pytestmark = [pytest.mark.perf, pytest.mark.beside]

SOURCE = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#define APART __attribute__((noinline, noclone))
static volatile unsigned long sink;
static long clock_ns(clockid_t which) {
    struct timespec now;
    clock_gettime(which, &now);
    return now.tv_sec * 1000000000 + now.tv_nsec;
}
APART static unsigned long leaf(unsigned long x) {
    for (int i = 0; i < 200000; i++) x = x * 31 + i;
    return x;
}
APART static unsigned long parent(unsigned long x) { unsigned long y = leaf(x); sink += y; return y + 1; }
APART static void work(int ms) {
    for (long end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ms * 1000000L; clock_ns(CLOCK_THREAD_CPUTIME_ID) < end;)
        sink += parent(sink) + 1;
}
APART __attribute__((noreturn)) static void never_returns(void) { for (long i = 0; i < 60000000; i++) sink += i; _exit(0); }
APART static void calls_the_last(void) { never_returns(); }
APART static unsigned long odd(int depth);
APART static unsigned long even(int depth) { return depth ? odd(depth - 1) + 1 : leaf(sink) + 1; }
APART static unsigned long odd(int depth) { return depth ? even(depth - 1) + 2 : leaf(sink) + 2; }
static void *spinner(void *nothing) { work(80); return nothing; }
int main(int count, char **arguments) {
    const char *mode = count > 1 ? arguments[1] : "";
    long wall = clock_ns(CLOCK_MONOTONIC);
    if (!strcmp(mode, "last call")) calls_the_last();
    if (!strcmp(mode, "recursion")) for (int i = 0; i < 300; i++) sink += even(i % 20);
    if (!strcmp(mode, "leaf")) work(150);
    if (!strcmp(mode, "sleeper")) for (int i = 0; i < 30; i++) { work(5); usleep(50000); }
    if (!strcmp(mode, "workers")) {
        pthread_t all[3];
        for (int i = 0; i < 3; i++) pthread_create(&all[i], 0, spinner, 0);
        for (int i = 0; i < 3; i++) pthread_join(all[i], 0);
    }
    printf("%ld %ld\n", clock_ns(CLOCK_PROCESS_CPUTIME_ID), clock_ns(CLOCK_MONOTONIC) - wall);
    return 0;
}
"""
OPTIONS = ("-O1", "-g", "-no-pie", "-pthread", "-fno-align-functions", "-fno-reorder-functions", "-fno-optimize-sibling-calls")
FRAME_POINTERS, DWARF = ("-g",), ("--call-graph", "dwarf,8192")
Recorded = tuple[Path, str]
Record = Callable[..., Recorded]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    folder = tmp_path_factory.mktemp("shapes")
    (folder / "shapes.c").write_text(SOURCE)
    for name, more in (("framed", ()), ("leafless", ("-momit-leaf-frame-pointer",))):
        command = ["gcc", *OPTIONS, "-fno-omit-frame-pointer", *more, "shapes.c", "-o", name]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture
def record(perf: str, programs: Path, tmp_path: Path) -> Record:
    def recorded(mode: str, call_graph: tuple[str, ...] = FRAME_POINTERS, name: str = "framed") -> Recorded:
        """(recording, what the program printed)."""
        path = tmp_path / "x.data"
        command = [perf, "record", "-N", "-q", "-e", "cpu-clock:u", "-F", "1999", *call_graph, "-o", str(path)]
        done = subprocess.run([*command, str(programs / name), mode], check=True, capture_output=True, text=True)
        return path, done.stdout

    return recorded


def folded(path: Path, capsys: pytest.CaptureFixture[str]) -> Counter[tuple[str, ...]]:
    """Stacks outermost first, with their weights."""
    assert main(["export", str(path), "-o", "-", "--format", "folded"]) == 0
    stacks: Counter[tuple[str, ...]] = Counter()
    for line in capsys.readouterr().out.splitlines():
        stack, _, weight = line.rpartition(" ")
        stacks[tuple(stack.split(";"))] += int(weight)
    return stacks


@pytest.mark.parametrize("call_graph", [FRAME_POINTERS, DWARF], ids=["frame pointers", "dwarf"])
def test_a_call_that_never_returns_has_its_caller(
    record: Record, call_graph: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """The return address is that of the next function in the program."""
    path, _ = record("last call", call_graph)
    spent = {stack: weight for stack, weight in folded(path, capsys).items() if "never_returns" in stack}
    under = sum(weight for stack, weight in spent.items() if stack[-3:] == ("main", "calls_the_last", "never_returns"))
    assert under > 0.99 * sum(spent.values()) > 0


def test_sleep_is_no_time_in_an_export(record: Record, capsys: pytest.CaptureFixture[str]) -> None:
    """30 times 5 ms of work and 50 ms of sleep: the profile is as long as the program's own CPU clock says."""
    path, printed = record("sleeper")
    cpu_ns, wall_ns = map(int, printed.split())
    assert main(["export", str(path), "-o", "-", "--format", "speedscope"]) == 0
    profile = json.loads(capsys.readouterr().out)["profiles"][0]
    assert (profile["unit"], profile["startValue"]) == ("nanoseconds", 0)
    assert profile["endValue"] == sum(profile["weights"])
    assert wall_ns > 5 * cpu_ns
    assert profile["endValue"] == pytest.approx(cpu_ns, rel=0.3)


def test_functions_that_call_each_other_count_once(record: Record, capsys: pytest.CaptureFixture[str]) -> None:
    path, _ = record("recursion")
    stacks = folded(path, capsys)
    assert max(stack.count("even") for stack in stacks) > 5
    by_hand = {name: sum(weight for stack, weight in stacks.items() if name in stack) for name in ("even", "odd", "leaf")}
    assert main(["report", str(path), "--format", "json", "--by", "function"]) == 0
    rows = {row["name"]: row["total"] for row in json.loads(capsys.readouterr().out)["rows"]}
    assert {name: rows[name] for name in by_hand} == by_hand
    assert max(by_hand.values()) <= sum(stacks.values())


def test_a_leaf_without_frame_pointer_is_not_called_complete(record: Record, programs: Path) -> None:
    path, _ = record("leaf", FRAME_POINTERS, "leafless")
    capture = read_recording(path, None, Locator())
    program = programs / "leafless"
    symbols = [line.split() for line in tool_output("nm", "-S", str(program)).splitlines()]
    start, size = next((int(row[0], 16), int(row[1], 16)) for row in symbols if row[-1] == "leaf")
    image = load_image(program)
    innermost = capture.stacks.frame[capture.samples.stack]
    in_program = np.array([dso.path == str(program) for dso in capture.dsos])[capture.frames.dso[innermost]]
    address = image.link_addresses(capture.frames.offset[innermost])
    in_leaf = in_program & (address >= start) & (address < start + size)
    assert np.count_nonzero(in_leaf) > 100
    assert not np.any(capture.samples.state[in_leaf] == StackState.COMPLETE)


def test_unwinding_finds_the_caller_of_a_leaf_without_frame_pointer(record: Record, capsys: pytest.CaptureFixture[str]) -> None:
    path, _ = record("leaf", DWARF, "leafless")
    stacks = folded(path, capsys)
    leaves = {stack: weight for stack, weight in stacks.items() if stack[-1] == "leaf"}
    whole = sum(weight for stack, weight in leaves.items() if stack[-4:] == ("main", "work", "parent", "leaf"))
    assert whole == sum(leaves.values()) > 0


def test_workers_of_a_process_whose_first_thread_waits(record: Record, capsys: pytest.CaptureFixture[str]) -> None:
    path, _ = record("workers")
    capture = read_recording(path, None, Locator())
    busy = Counter(capture.threads.tid[capture.samples.thread].tolist())
    assert sum(count > 50 for count in busy.values()) == 3
    names = {capture.strings[row] for row in capture.threads.process_name.tolist()}
    assert names == {"framed"}
