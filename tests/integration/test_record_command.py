"""`slotscope record` and the commands around it, with real programs and real perf."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from profiler.cli.main import main
from profiler.model.run import RunMode
from profiler.store.records import SessionState
from profiler.store.selectors import resolve
from profiler.store.store import Store, open_store

pytestmark = [pytest.mark.perf, pytest.mark.beside, pytest.mark.usefixtures("perf")]


@dataclass(frozen=True, slots=True)
class Done:
    stdout: str
    stderr: str


Slotscope = Callable[..., Done]
LOOP = """
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) unsigned long spin(unsigned long rounds) {
    volatile unsigned long sum = 0;
    for (unsigned long i = 0; i < rounds; i++) sum += i;
    return sum;
}
int main(int argc, char **argv) {
    printf("sum %lu\\ntook 12.5 ms\\n", spin(strtoul(argv[1], 0, 10) * 1000000UL));
    return 0;
}
"""


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that spins for its argument in millions of rounds, most of a millisecond each."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    directory = tmp_path_factory.mktemp("loop")
    (directory / "loop.c").write_text(LOOP)
    subprocess.run(["gcc", "-O1", "-g", "-o", "loop", "loop.c"], cwd=directory, check=True)
    return directory / "loop"


def command(store: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "profiler.cli.main", "--store", str(store), *arguments]


@pytest.fixture
def slotscope(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Slotscope:
    def run(*arguments: str, code: int = 0) -> Done:
        found = main(["--store", str(tmp_path / "store"), *arguments])
        written = capsys.readouterr()
        assert "Traceback" not in written.err
        assert found == code, written.err
        return Done(written.out, written.err)

    return run


def store_of(tmp_path: Path) -> Store:
    return open_store(tmp_path / "store", create=False)


def test_two_variants_in_turn(slotscope: Slotscope, loop: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copy(loop, copy)
    data = tmp_path / "input.bin"
    data.write_bytes(b"abc")
    options = ["--runs", "2", "--warmup", "1", "--seed", "7", "--metric", "took=took (.*)$", "--input", str(data), "--keep-raw"]
    variants = [f"--variant=base={loop}", f"--variant=tuned={copy}"]
    done = slotscope("record", *variants, *options, "--before", "true 'a b'", "--", "{binary}", "60")
    store = store_of(tmp_path)
    (session,) = store.sessions()
    assert (session.state, session.finished_rounds, session.start.seed) == (SessionState.FINISHED, 2, 7)
    assert session.start.command == ("{binary}", "60")
    runs = store.runs()
    assert [run.summary.position for run in runs] == list(range(8))
    assert all(run.round_complete and not run.summary.failure for run in runs)
    for run in runs:
        capture = store.load(run)
        info = capture.info
        assert info.command == (str(loop if run.summary.variant == "base" else copy), "60")
        assert info.outcome.output_tail.endswith("took 12.5 ms\n")
        assert [(metric.name, metric.value, metric.unit) for metric in info.outcome.metrics] == [("took", 12.5e6, "ns")]
        # sha256sum of "abc", FIPS 180-2 appendix B.1
        assert info.inputs[0].sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        assert (len(capture.samples) > 10) == (run.summary.mode is RunMode.PROFILED)
    notes = subprocess.run(["readelf", "-n", loop], capture_output=True, text=True, check=True).stdout
    assert runs[0].summary.build_id == notes.partition("Build ID: ")[2].split()[0]
    assert f"session {session.name}: 2 rounds, 8 runs; medians per run\n" in done.stdout
    assert "cpu under perf" in done.stdout
    assert "wall under perf" not in done.stdout
    assert "compare base tuned" in done.stdout
    assert "seed 7" in done.stderr
    assert "call graph dwarf,16384 (loop does not keep frame pointers)" in done.stderr
    assert done.stderr.count("round 2/2") == 4
    assert len(list((tmp_path / "store").glob("captures/*/*.perf.data"))) == 4
    assert [run.key.number for run in resolve("tuned", store).runs] == [
        r.key.number for r in runs if r.summary.variant == "tuned"
    ]
    shown = slotscope("show").stdout
    assert runs[0].summary.build_id in shown
    assert "built as   debug information: full" in shown
    listed = slotscope("list").stdout
    assert listed.count(session.name) == 2
    assert slotscope("rm", "base").stdout == f"removed {session.name}/base: 4 runs\n"
    assert slotscope("rm", session.name).stdout == f"removed {session.name}: 4 runs\n"
    assert slotscope("list").stdout == "the store is empty\n"
    assert list((tmp_path / "store" / "captures").iterdir()) == []


@pytest.mark.alone
def test_single_program_is_profiled_once_and_named_after_itself(slotscope: Slotscope, loop: Path, tmp_path: Path) -> None:
    slotscope("record", "--call-graph", "none", "--frequency", "499", "--", str(loop), "100")
    (run,) = store_of(tmp_path).runs()
    assert (run.summary.variant, run.summary.mode, run.summary.frequency_hz) == ("loop", RunMode.PROFILED, 499)
    capture = store_of(tmp_path).load(run)
    outcome = capture.info.outcome
    accounted_ns = outcome.user_ns + outcome.system_ns
    # The sampling timer starts anew at every switch of context: 15 to 45 us each on a busy virtual machine.
    doubt_ns = 4e6 + 50_000 * (outcome.voluntary_switches + outcome.involuntary_switches)
    assert int(capture.samples.weight.sum()) == pytest.approx(accounted_ns, abs=0.02 * accounted_ns + doubt_ns)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--", "no-such-program"], "error: no-such-program: not found in PATH"),
        (["--", "/etc/passwd"], "/etc/passwd: not executable"),
        (
            ["--metric", "t=nowhere (.*)", "--", "echo", "hello"],
            "metric 't' (nowhere (.*)) matches nothing in the program's output",
        ),
        (["--before", "false", "--", "true"], "--before command ended with 1"),
        (["--event", "no-such-event", "--", "true"], "perf cannot record event 'no-such-event' here"),
        (["--", "sh", "-c", "echo the reason; exit 7"], "sh: the first run failed: exit code 7; its last line: the reason"),
        (["--", "sh", "-c", "kill -SEGV $$"], "killed by SIGSEGV"),
    ],
)
def test_what_goes_wrong_is_one_line(slotscope: Slotscope, arguments: list[str], message: str) -> None:
    done = slotscope("record", "--runs", "3", *arguments, code=1)
    errors = [line for line in done.stderr.splitlines() if line.startswith("slotscope: error:")]
    assert len(errors) == 1
    assert message in errors[0]
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no command to record"),
        (["--variant", "a=x", "--", "true"], "there is no {binary} in the command"),
        (["--", "{binary}"], "write --variant"),
        (["--cpus", "3-1", "--", "true"], "expected numbers and ranges"),
        (["--call-graph", "sideways", "--", "true"], "expected auto, fp, dwarf[,SIZE], lbr or none"),
        (["--metric", "t=(", "--", "true"], "not a regular expression"),
        (["--before", "it's", "--", "true"], "--before"),
        (["--no-such-option", "--", "true"], "--no-such-option"),
    ],
)
def test_wrong_usage(slotscope: Slotscope, tmp_path: Path, arguments: list[str], message: str) -> None:
    done = slotscope("record", *arguments, code=2)
    assert message in done.stderr
    assert not list(tmp_path.glob("store/captures/*"))


def test_failed_first_run_is_kept_and_marked(slotscope: Slotscope, tmp_path: Path) -> None:
    slotscope("record", "--runs", "3", "--metric", "t=nowhere (.*)", "--", "echo", "hello", code=1)
    (run,) = store_of(tmp_path).runs()
    assert run.summary.failure.startswith("metric 't'")
    assert store_of(tmp_path).load(run).info.outcome.output_tail == "hello\n"
    assert "run 0 is left out: metric 't' (nowhere (.*)) matches nothing in the program's output" in slotscope("show").stdout


def test_an_event_that_perf_does_not_know_leaves_no_session(slotscope: Slotscope, tmp_path: Path) -> None:
    """Neither the only one of a store, nor the last of several."""
    slotscope("record", "--event", "nope", "--", "true", code=1)
    assert store_of(tmp_path).sessions() == ()
    slotscope("record", "--profile", "none", "--", "true")
    (whole,) = store_of(tmp_path).sessions()
    done = slotscope("record", "--event", "nope", "--", "true", code=1)
    assert "was cut short before a run was finished" in done.stderr
    assert store_of(tmp_path).sessions() == (whole,)
    assert whole.name in slotscope("show", "last").stdout


def test_phase_that_matches_nothing_stops_the_session(slotscope: Slotscope, loop: Path, tmp_path: Path) -> None:
    done = slotscope("record", "--runs", "4", "--phase", "^spun$", "--", str(loop), "60", code=1)
    assert "spin" in done.stderr.splitlines()[-1]
    assert len(store_of(tmp_path).runs()) == 2
    slotscope("record", "--runs", "2", "--phase", "^spin$", "--", str(loop), "60")
    assert len(store_of(tmp_path).runs()) == 6


def processes_named(name: str) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if name in entry.read_bytes().decode("utf-8", "replace"):
                found.append(entry.parent.name)
        except OSError:
            continue
    return found


def start(tmp_path: Path, *arguments: str) -> subprocess.Popen[str]:
    started = subprocess.Popen(
        command(tmp_path / "store", "record", *arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert started.stderr is not None
    return started


def wait_for_line(process: subprocess.Popen[str], text: str) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if text in line:
            return
    raise AssertionError(f"{text!r} never came")


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_keep_finished_rounds_and_leave_nothing_running(loop: Path, tmp_path: Path, sent: signal.Signals) -> None:
    program = tmp_path / f"interrupted-loop-{sent}"
    shutil.copy(loop, program)
    with start(tmp_path, "--runs", "500", "--", str(program), "60") as process:
        wait_for_line(process, "round 2/500")
        time.sleep(0.2)
        process.send_signal(sent)
        assert process.wait(timeout=30) == 128 + sent
        assert process.stderr is not None
        rest = process.stderr.read()
    assert "was cut short" in rest
    assert "Traceback" not in rest
    assert processes_named(str(program)) == []
    store = store_of(tmp_path)
    (session,) = store.sessions()
    assert session.state is SessionState.INTERRUPTED
    assert session.finished_rounds >= 1
    for run in store.runs():
        assert run.round_complete == (run.summary.round < session.finished_rounds)
        assert store.load(run).info.outcome.failure == ""
    assert all(run.round_complete for run in resolve("last", store).runs)
    assert list((tmp_path / "store" / "tmp").iterdir()) == []


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.full)])
def test_killed_recorder_leaves_whole_runs_and_nothing_running(loop: Path, tmp_path: Path, seed: int) -> None:
    program = tmp_path / f"killed-loop-{seed}"
    shutil.copy(loop, program)
    with start(tmp_path, "--runs", "500", "--", str(program), "60") as process:
        wait_for_line(process, "round 1/500")
        time.sleep(random.Random(seed).uniform(0, 1.5))
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=30)
    deadline = time.monotonic() + 20
    while processes_named(str(program)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert processes_named(str(program)) == []
    listed = subprocess.run(
        command(tmp_path / "store", "list"), capture_output=True, text=True, check=True, env=os.environ
    ).stdout
    assert "unfinished" in listed
    store = store_of(tmp_path)
    runs = store.runs()
    assert len(runs) >= 1
    assert [store.load(run).info.identity.position for run in runs] == list(range(len(runs)))
    assert [run.round_complete for run in runs] == [run.summary.round < store.sessions()[0].finished_rounds for run in runs]


def test_nothing_is_listed_where_there_is_no_store(slotscope: Slotscope) -> None:
    assert "no store there; `slotscope record` or `experiment run` makes one" in slotscope("list", code=1).stderr
