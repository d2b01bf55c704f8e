"""perf script text of many perf versions and languages against what other tools read from it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

from collectors.recording_file import read_recording
from profiler.model.capture import Capture
from symbolize.locate import Locator

FLAME_GRAPH = "brendangregg+FlameGraph/test"
INFERNO = "jonhoo+inferno/tests/data/collapse-perf"
SPEEDSCOPE = "jlfwong+speedscope/sample/profiles/linux-perf"
FIREFOX = "firefox-devtools+profiler/src/test/fixtures/upgrades"
PERFVIEW = "microsoft+perfview/src/LinuxTracing.Tests/Sources"

Stack = tuple[str, tuple[str, ...]]


def capture_of(path: Path) -> Capture:
    return read_recording(path, None, Locator())


def frame_names(capture: Capture) -> list[str]:
    """Per frame its name, or what the tools print instead: the file in brackets."""
    names = []
    for symbol, dso in zip(capture.frames.symbol.tolist(), capture.frames.dso.tolist(), strict=True):
        nameless = capture.dsos[dso].name.strip("[]").replace("kernel", "unknown")
        names.append(capture.strings[symbol] if symbol >= 0 else f"[{nameless}]")
    return names


def stacks(capture: Capture, event: int) -> Iterator[tuple[str, tuple[str, ...], int]]:
    """(comm, names outermost first, weight) of each sample of an event."""
    names, threads = frame_names(capture), capture.threads
    for row in np.flatnonzero(capture.samples.event == event).tolist():
        frames = capture.stacks.frames_leaf_first(int(capture.samples.stack[row]))
        comm = capture.strings[threads.thread_name[capture.samples.thread[row]]]
        yield comm, tuple(names[frame] for frame in reversed(frames)), int(capture.samples.weight[row])


def tidied(name: str) -> str:
    """What the collapsing tools agree on: no annotations, arguments, quotes, and of a Java class no "L" and ";".  They show
    the kernel's unknown code under its file, and code of this library whose name perf prints as a blank under that."""
    name = re.sub(r"_\[[kjiw]\]$", "", name).replace(";", ":")
    name = re.sub(r"\((?!anonymous namespace\)).*", "", name) if not re.search(r"\.\(.*\)\.", name) else name
    name = re.sub(r"^\[vmlinux.*\]$", "[unknown]", re.sub(r"^L(?=[\w$]+/)", "", name))
    name = name.replace("::_{{closure}}", "::{{closure}}").replace("[[vdso]]", "[vdso]")
    return re.sub(r"^ $", "[libc-2.15.so]", re.sub(r"[\"']", "", name))


def collapsed(path: Path, has_numbers: bool) -> Counter[Stack]:
    found: Counter[Stack] = Counter()
    for line in path.read_text().splitlines():
        stack, weight = line.rsplit(" ", 1)
        comm, *names = stack.split(";")
        found[comm.rsplit("-", 1)[0] if has_numbers else comm, tuple(tidied(name) for name in names)] += int(weight)
    return found


def counted(capture: Capture, event: int = 0) -> Counter[Stack]:
    found: Counter[Stack] = Counter()
    for comm, names, weight in stacks(capture, event):
        found[comm, tuple(tidied(name) for name in names)] += weight
    return found


@pytest.mark.parametrize(
    "name",
    ["cycles-instructions-01", "dd-stacks-01", "funcab-cmd-01", "iperf-stacks-pidtid-01", "java-stacks-01", "java-stacks-02",
     "js-stacks-01", "vertx-stacks-01"],
)  # fmt: skip
def test_stacks_equal_stackcollapse(name: str, corpus: Path) -> None:
    """It shows the first event alone, and loses the last sample of a text that does not end with a blank line."""
    path = corpus / FLAME_GRAPH / f"perf-{name}.txt"
    expected = collapsed(corpus / FLAME_GRAPH / "results" / f"perf-{name}-collapsed-tid.txt", has_numbers=True)
    capture = capture_of(path)
    found = counted(capture)
    assert not expected - found
    is_last_lost = not path.read_text().endswith("\n\n")
    assert len(list((found - expected).elements() if capture.events[0].unit == "samples" else found - expected)) == is_last_lost


@pytest.mark.parametrize("name", ["go-stacks", "java-inline", "single-event", "versioned-vmlinux"])
def test_stacks_equal_infernos(name: str, corpus: Path) -> None:
    suffix = "-kernel" if name == "versioned-vmlinux" else ""
    expected = collapsed(corpus / INFERNO / "results" / f"{name}-collapsed{suffix}.txt", has_numbers=False)
    assert counted(capture_of(corpus / INFERNO / f"{name}.txt")) == expected


def test_the_example_of_flame_graph_equals_infernos(corpus: Path) -> None:
    expected = collapsed(corpus / INFERNO / "results" / "example-perf-stacks-collapsed.txt", has_numbers=False)
    assert counted(capture_of(corpus / "brendangregg+FlameGraph/example-perf-stacks.txt.gz")) == expected


@pytest.mark.parametrize(
    ("name", "text"),
    [("forks", "forks.linux-perf.txt"), ("simple", "simple.linux-perf.txt"), ("one-sample", "one-sample.linux-perf.txt"),
     ("simple-with-header", "simple-with-header.linux-perf.txt"), ("simple-with-pids", "simple-with-pid.linux-perf.txt")],
)  # fmt: skip
def test_stacks_in_time_equal_speedscopes(name: str, text: str, corpus: Path) -> None:
    """Its stacks of a thread in the order of time, each run of equal ones once; the idle threads are one for it."""
    snapshot = (corpus / "EXPECTED" / "speedscope-linux-perf.handed.snap").read_text()
    title = rf"importFromLinuxPerf {re.escape(name)}\.linux-perf\.txt \d+"
    profiles = re.findall(rf"^exports\[`{title}`\] = `$(.*?)^`;", snapshot, re.S | re.M)
    assert profiles
    found = stacks_of_threads(capture_of(corpus / SPEEDSCOPE / text))
    for profile in profiles:
        thread = re.search(r'^  "name": "(?:swapper|.* tid: (\d+))",$', profile, re.M)
        assert thread
        if thread[1] is None:
            continue
        expected = re.findall(r'^    "(.+) [\d.]+(?:ns|µs|ms|s)?",$', profile, re.M)
        for mangled, readable in (
            ("_Z4betav", "beta()"),
            ("_Z5deltav", "delta()"),
            ("_Z5alphav", "alpha()"),
            ("_Z5gammav", "gamma()"),
        ):
            expected = [stack.replace(mangled, readable) for stack in expected]
        assert expected == [stack for stack, _ in groupby(found[int(thread[1])])]


def stacks_of_threads(capture: Capture) -> dict[int, list[str]]:
    """The stacks of each thread in the order of time, as speedscope shows them."""
    names = [
        name if not name.startswith("[") else f"??? ({capture.dsos[dso].path.replace('[kernel]', '[kernel.kallsyms]')})"
        for name, dso in zip(frame_names(capture), capture.frames.dso.tolist(), strict=True)
    ]
    found: dict[int, list[str]] = {}
    tids = capture.threads.tid[capture.samples.thread].tolist()
    for tid, stack in zip(tids, capture.samples.stack.tolist(), strict=True):
        found.setdefault(tid, []).append(";".join(names[frame] for frame in reversed(capture.stacks.frames_leaf_first(stack))))
    return found


@pytest.mark.parametrize(
    ("text", "title"), [("test.perf.gz", "a perf profile"), ("simple-perf.txt.gz", "a simple perf profile")]
)
def test_threads_and_stacks_equal_the_firefox_profilers(text: str, title: str, corpus: Path) -> None:
    """It drops functions whose name begins with a parenthesis, and shows thunks as what they lead to."""
    snapshot = (corpus / "EXPECTED" / "firefox-profile-conversion.handed.snap").read_text()
    part = re.search(rf"should import {title} 1`\] = `$(.*?)^`;", snapshot, re.S | re.M)
    assert part
    capture = capture_of(corpus / FIREFOX / text)
    tids = capture.threads.tid[capture.samples.thread].tolist()
    counts = re.findall(r'"sampleCount": (\d+),.*?"tid": (\d+),', part[1], re.S)
    assert counts
    assert {tid: int(count) for count, tid in counts} == {str(tid): count for tid, count in Counter(tids).items()}
    names = frame_names(capture)
    found: dict[int, Counter[str]] = {}
    for tid, stack in zip(tids, capture.samples.stack.tolist(), strict=True):
        frames = [names[frame] for frame in reversed(capture.stacks.frames_leaf_first(stack))]
        shown = [re.sub(r"^\[.*\]$", "[unknown]", name) for name in frames if not name.startswith("(")]
        found.setdefault(tid, Counter())[" -> ".join(shown).replace("non-virtual thunk to ", "")] += 1
    checked = 0
    for listed, tid in re.findall(r'"stacks": Array \[(.*?)\],\s+"thread": ".*?",\s+"tid": (\d+),', part[1], re.S):
        for count, stack in re.findall(r'^\s+"(\d+) \(\d+x\) (.*)",$', listed, re.M):
            assert found[int(tid)][stack.replace('\\\\"', '"')] == int(count), stack
            checked += 1
    assert checked > 10


@pytest.mark.parametrize(
    ("name", "comms", "events"),
    [
        ("disk_io_no_stacks", ["fio", "swapper", "fio", "swapper"], {"block:block_rq_issue": 2, "block:block_rq_complete": 2}),
        ("no_stack_frames", ["comm", "comm"], {"event/call-graph=no/": 1, "event": 1}),
        ("one_complete_switch", ["comm1", "comm2"], {"sched:sched_switch": 2}),
        ("one_complete_switch_format2", ["comm1", "comm2"], {"sched:sched_switch": 2}),
        ("one_induced_switch", ["comm1", "comm2", "comm3"], {"sched:sched_switch": 1, "cpu_clock": 2}),
        ("space_sep_command", ["comm and3 another part to the command line5 part3 part1"], {"event_name": 1}),
        ("two_small_generic", ["comm", "comm2"], {"event_name": 2}),
    ],
)
def test_headers_of_perfviews_tests(name: str, comms: list[str], events: dict[str, int], corpus: Path) -> None:
    """They have byte order marks, tabs, and tracepoints with their place on the header line."""
    capture = capture_of(corpus / PERFVIEW / f"{name}.perf.data.dump")
    names = [capture.strings[row] for row in capture.threads.thread_name[capture.samples.thread].tolist()]
    assert names == comms
    assert dict(Counter(capture.events[row].name for row in capture.samples.event.tolist())) == events


def test_the_weights_of_magic_traces_sampling(corpus: Path) -> None:
    """A text without comms, whose periods are all 1; every header line is a sample."""
    path = corpus / "janestreet+magic-trace/test/c_demo_sampling.perf"
    headers = [line for line in path.read_text().splitlines() if "cycles:u:" in line]
    capture = capture_of(path)
    assert capture.samples.weight.tolist() == [1] * len(headers)
    assert {(event.name, event.unit) for event in capture.events} == {("cycles:u", "cycles")}
