"""`slotscope attach` on real processes, with real perf: what it records against the program's own clocks, and how it ends."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from profiler.model.capture import Capture
from profiler.pipeline import AnalysisOptions, Arm, arm_costs
from profiler.store.records import SessionState
from profiler.store.store import Store, open_store
from support import attached_program
from support.attached_program import Burner, wait_for_line
from symbolize.locate import Locator
from symbolize.symbolizer import Symbolizer

pytestmark = [pytest.mark.perf, pytest.mark.beside, pytest.mark.usefixtures("perf")]

StartBurner = Callable[..., Burner]
ROOT = Path(__file__).resolve().parents[2]
# For an interpreter other than ours, too.
MODULES = os.pathsep.join((str(ROOT), *(path for path in sys.path if path.endswith("site-packages"))))
FAST = ("--frequency", "997", "--call-graph", "fp")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    return attached_program.build(tmp_path_factory.mktemp("burner"))


@pytest.fixture
def burner(program: Path, tmp_path: Path) -> Iterator[StartBurner]:
    started: list[Burner] = []

    def start(*arguments: str, program: Path = program) -> Burner:
        started.append(attached_program.start(program, tmp_path / f"burner-{len(started)}.txt", *arguments))
        return started[-1]

    yield start
    for each in started:
        each.kill()


@dataclass(frozen=True, slots=True)
class Attached:
    """`slotscope attach`, running."""

    process: subprocess.Popen[bytes]
    log: Path
    out: Path

    def wait_until_recording(self, times: int = 1) -> None:
        deadline = time.monotonic() + 60
        while self.log.read_text().count("; windows of ") < times:
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.02)

    def end(self, number: int = 0, code: int = 0) -> str:
        """What it printed; ``number``: the signal that asks for the end."""
        if number:
            self.process.send_signal(number)
        assert self.process.wait(120) == code, self.log.read_text()
        assert "Traceback" not in self.log.read_text()
        return self.out.read_text()


StartAttach = Callable[..., Attached]


def command(store: Path, *arguments: str) -> list[str]:
    return ["-m", "profiler.cli.main", "--store", str(store), "attach", *arguments]


@pytest.fixture
def attach(tmp_path: Path) -> Iterator[StartAttach]:
    started: list[Attached] = []

    def start(
        *arguments: str, prefix: Sequence[str] = (), python: str = sys.executable, store: Path = tmp_path / "store"
    ) -> Attached:
        name = f"attach-{len(started)}"
        log, out = tmp_path / f"{name}.err", tmp_path / f"{name}.out"
        with log.open("wb") as errors, out.open("wb") as output:
            process = subprocess.Popen(
                [*prefix, python, *command(store, *arguments)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                cwd=ROOT,
                env=dict(os.environ, PYTHONPATH=MODULES),
            )
        started.append(Attached(process, log, out))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.wait()


def store_of(tmp_path: Path) -> Store:
    return open_store(tmp_path / "store", create=False)


def captures_of(tmp_path: Path) -> list[Capture]:
    store = store_of(tmp_path)
    return [store.load(run) for run in store.runs()]


def cpu_s(capture: Capture) -> float:
    return (capture.info.outcome.user_ns + capture.info.outcome.system_ns) / 1e9


def sampled_s(captures: Sequence[Capture]) -> float:
    return sum(int(capture.samples.weight.sum()) for capture in captures) / 1e9


def sampled_by_part(captures: Sequence[Capture]) -> dict[str, float]:
    """Seconds of samples with each function on their stack; windows that do not count in comparisons included."""
    counted = [
        replace(capture, info=replace(capture.info, outcome=replace(capture.info.outcome, failure=""))) for capture in captures
    ]
    options = AnalysisOptions(dimensions=("function",))
    table = arm_costs(Arm("node", tuple(counted)), options, Symbolizer(Locator(), None)).tables["function"]
    return {name: weight / 1e9 for name, weight in zip(table.labels, table.total_weight.sum(axis=1).tolist(), strict=True)}


def thread_names(capture: Capture) -> set[str]:
    used = np.unique(capture.samples.thread)
    return {capture.strings[name] for name in capture.threads.thread_name[used].tolist()}


def perfs_of(directory: Path) -> list[int]:
    """Running perfs that write below a directory."""
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit() and _writes_below(int(entry), directory)]


def _writes_below(pid: int, directory: Path) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return b"perf\0record" in words and os.fsencode(directory) in words


@pytest.mark.alone
def test_threads_and_children_early_and_late(burner: StartBurner, attach: StartAttach, tmp_path: Path) -> None:
    """The program's own clocks say how much each part used; the windows add up to all of it."""
    target = burner("0.3", "0.3", "0.3")
    attached = attach("--pid", str(target.pid), "--window", "1", "--variant", "node", *FAST)
    attached.wait_until_recording()
    os.kill(target.pid, signal.SIGUSR1)
    target.wait_for("done")
    printed = attached.end(signal.SIGINT)
    captures = captures_of(tmp_path)
    assert {capture.info.identity.instance for capture in captures} == {f"burner-{target.pid}"}
    assert {capture.info.identity.variant for capture in captures} == {"node"}
    assert [capture.info.identity.round for capture in captures] == list(range(len(captures)))
    (session,) = store_of(tmp_path).sessions()
    assert (session.state, session.finished_rounds) == (SessionState.FINISHED, len(captures))
    timers = target.timers_s()
    assert set(timers) == {"early_part", "late_part", "child_part"}
    # Children that ended count in ticks of 10 ms, their user and system time each rounded down; and the edges of windows.
    assert sum(map(cpu_s, captures)) == pytest.approx(sum(timers.values()), rel=0.03, abs=2 * 0.02 + 0.02)
    sampled = sampled_by_part(captures)
    for part, seconds in timers.items():
        # Ends of threads lose up to a period each; the rest is the scatter of a count.
        allowed = 0.04 * seconds + 4 * math.sqrt(seconds / 997) + 2 / 997
        assert sampled[part] == pytest.approx(seconds, abs=allowed), part
    threads = {name for capture in captures for name in thread_names(capture)}
    assert {"early", "late", "burner"} <= threads
    assert len({pid for capture in captures for pid in capture.threads.pid.tolist()}) == 3  # and two children
    assert f"session {session.name}: ended as asked; {len(captures)} windows of node" in printed
    assert "perf itself used" in printed
    assert not perfs_of(tmp_path)


@pytest.mark.full
@pytest.mark.alone
def test_ends_of_windows_leave_hardly_a_gap_and_the_windows_are_one_process(
    burner: StartBurner, attach: StartAttach, tmp_path: Path
) -> None:
    target = burner("forever")
    printed = attach("--pid", str(target.pid), "--duration", "3", "--window", "1", *FAST).end()
    captures = captures_of(tmp_path)
    assert captures
    for capture in captures:
        outcome = capture.info.outcome
        assert capture.info.program.path.endswith("/burner")
        assert [metric.name for metric in outcome.metrics] == ["perf cpu"]
        assert outcome.metrics[0].value > 0
    # What is sampled is what the kernel charged the process with, but for the gaps.
    assert sampled_s(captures) == pytest.approx(sum(map(cpu_s, captures)), rel=0.05)
    gap = re.search(r"not recorded between windows: ([0-9.]+) ms at most", printed)
    assert gap is not None
    assert float(gap[1]) < 1000  # a window
    # A report speaks of one process: the interval is that of sampling.
    reported = slotscope(tmp_path, "report", "last", "--by", "function", "--format", "json")
    report = json.loads(reported)
    (row,) = [row for row in report["rows"] if row["name"] == "endless_part"]
    assert row["total"] > 0.9 * report["total"]


def slotscope(tmp_path: Path, *arguments: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "profiler.cli.main", "--store", str(tmp_path / "store"), *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.mark.full
@pytest.mark.alone
def test_windows_are_never_replicates(burner: StartBurner, attach: StartAttach, tmp_path: Path) -> None:
    """Two processes watched for several windows each: one value each, and so no verdict."""
    for variant in ("old", "new"):
        target = burner("forever")
        attach("--pid", str(target.pid), "--duration", "2", "--window", "1", "--variant", variant, *FAST).end()
        target.kill()
    compared = json.loads(slotscope(tmp_path, "compare", "old", "new", "--by", "function", "--format", "json"))
    (candidate,) = compared["candidates"]
    assert candidate["total"]["verdict"] == "too_few_runs"
    assert len(candidate["total"]["values"]["baseline"]) == 1
    assert {metric["name"] for metric in candidate["metrics"]} == {"user", "system", "perf cpu"}
    assert {metric["verdict"] for metric in candidate["metrics"]} == {"too_few_runs"}


def holds_ended_process(attached: Attached) -> bool:
    """Whether slotscope has a file descriptor of a process that has ended and was waited for (pidfd_open(2))."""
    facts = ""
    for entry in Path(f"/proc/{attached.process.pid}/fdinfo").iterdir():
        with contextlib.suppress(FileNotFoundError):
            facts += entry.read_text()
    assert "\nPid:" in facts
    return "\nPid:\t-1\n" in facts


def test_another_process_takes_the_place(burner: StartBurner, attach: StartAttach, program: Path, tmp_path: Path) -> None:
    own = Path(shutil.copy(program, tmp_path / f"place-{os.getpid()}"))  # other tests have burners, too
    first = burner("forever", program=own)
    attached = attach("--comm", f"pl.ce-{os.getpid()}", "--window", "1", *FAST)
    attached.wait_until_recording()
    time.sleep(1.5)
    first.kill()
    wait_for_line(attached.log, f"waiting for another process named 'pl.ce-{os.getpid()}'")
    second = burner("forever", program=own)
    attached.wait_until_recording(times=2)
    time.sleep(1.2)
    deadline = time.monotonic() + 10
    while holds_ended_process(attached) and time.monotonic() < deadline:  # a perf may just have ended
        time.sleep(0.02)
    assert not holds_ended_process(attached)
    attached.end(signal.SIGTERM)
    captures = captures_of(tmp_path)
    instances = [capture.info.identity.instance for capture in captures]
    assert list(dict.fromkeys(instances)) == [f"{own.name}-{first.pid}", f"{own.name}-{second.pid}"]
    last_of_first = [capture for capture in captures if capture.info.identity.instance == f"{own.name}-{first.pid}"][-1]
    told = (last_of_first.info.outcome.failure, *last_of_first.quality.notes)
    assert any("the process ended" in text for text in told)
    # A window holds one process only.
    for capture in captures:
        pids = set(capture.threads.pid[np.unique(capture.samples.thread)].tolist())
        assert pids <= {int(capture.info.identity.instance.rpartition("-")[2])}


@pytest.mark.alone
def test_process_that_ends_is_told_of(burner: StartBurner, attach: StartAttach, tmp_path: Path) -> None:
    target = burner("forever")
    attached = attach("--pid", str(target.pid), "--window", "60", *FAST)
    attached.wait_until_recording()
    time.sleep(1)
    target.kill()
    printed = attached.end()
    assert f"process {target.pid} (burner) ended; 1 window of burner" in printed
    (capture,) = captures_of(tmp_path)
    assert capture.info.outcome.failure == ""
    assert any("in place of 60 s: the process ended" in note for note in capture.quality.notes)
    # The last second of its CPU time may be missing; its samples are there.
    assert sampled_s([capture]) > 0.9 * cpu_s(capture) > 0


def test_asked_to_end_early(burner: StartBurner, attach: StartAttach, tmp_path: Path) -> None:
    """The window under way is kept, and the exit code says that it was not all."""
    target = burner("forever")
    attached = attach("--pid", str(target.pid), "--duration", "60", "--window", "30", *FAST)
    attached.wait_until_recording()
    time.sleep(0.5)
    attached.end(signal.SIGTERM, 128 + signal.SIGTERM)
    (capture,) = captures_of(tmp_path)
    assert capture.info.outcome.failure == ""
    assert any("in place of 30 s: the end was asked for" in note for note in capture.quality.notes)
    assert store_of(tmp_path).sessions()[0].state is SessionState.INTERRUPTED
    assert not perfs_of(tmp_path)


def test_killed_for_certain(burner: StartBurner, attach: StartAttach, tmp_path: Path) -> None:
    """No perf stays behind, and the store has whole windows only."""
    target = burner("forever")
    attached = attach("--pid", str(target.pid), "--window", "1", *FAST)
    wait_for_line(attached.log, "window 1 ")
    assert perfs_of(tmp_path)
    attached.end(signal.SIGKILL, -signal.SIGKILL)
    deadline = time.monotonic() + 10
    while perfs_of(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not perfs_of(tmp_path)
    assert target.process.poll() is None
    captures = captures_of(tmp_path)
    assert captures
    assert all(len(capture.samples) for capture in captures)
    assert list((tmp_path / "store/tmp").iterdir()) == []  # opening the store has cleared what was half done
    stored = {run.blob for run in store_of(tmp_path).runs()}
    files = {str(path.relative_to(tmp_path / "store/captures")) for path in (tmp_path / "store/captures").rglob("*.capture")}
    assert stored <= files


@pytest.mark.full
@pytest.mark.alone
def test_disk_stays_bounded(burner: StartBurner, attach: StartAttach, tmp_path: Path) -> None:
    """Over 20 windows no more raw recordings are there than wait to be read, and the one under way and the next."""
    target = burner("forever")
    attached = attach("--pid", str(target.pid), "--duration", "20", "--window", "1", *FAST)
    attached.wait_until_recording()
    most = 0
    while attached.process.poll() is None:
        most = max(most, len(list((tmp_path / "store/tmp").glob("*/*.perf.data"))))
        time.sleep(0.05)
    attached.end()
    assert 0 < most <= 4 + 2
    captures = captures_of(tmp_path)
    assert 15 <= len(captures) <= 20  # a late edge moves those behind it
    assert sum(map(cpu_s, captures)) == pytest.approx(sampled_s(captures), rel=0.03)
    assert list((tmp_path / "store/tmp").iterdir()) == []


@pytest.mark.alone
def test_all_processes_of_a_cgroup(burner: StartBurner, attach: StartAttach, tmp_path: Path) -> None:
    base = next(
        (path for path in (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup")) if (path / "cgroup.procs").exists()), None
    )
    if base is None or os.geteuid() != 0:
        pytest.skip("needs root and the second version of cgroups")
    group = base / f"slotscope-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup can be made here: {error.strerror}")
    try:
        targets = [burner("forever"), burner("forever")]
        for target in targets:
            (group / "cgroup.procs").write_text(f"{target.pid}\n")
        name = str(group.relative_to("/sys/fs/cgroup"))
        attach("--cgroup", name, "--duration", "1", "--variant", "group", *FAST).end()
        (capture,) = captures_of(tmp_path)
        pids = capture.threads.pid[capture.samples.thread]
        for target in targets:
            assert np.count_nonzero(pids == target.pid) > 50
        assert sampled_s([capture]) == pytest.approx(cpu_s(capture), rel=0.1)
        assert "--cgroup" in slotscope(tmp_path, "show", "last")
    finally:
        for target in targets:
            target.kill()
        deadline = time.monotonic() + 5
        while (group / "cgroup.procs").read_text() and time.monotonic() < deadline:
            time.sleep(0.01)
        group.rmdir()


def as_nobody(*capabilities: str) -> list[str]:
    """What runs a program as a user who owns nothing, with these capabilities."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root and setpriv")
    words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    if capabilities:
        added = ",".join(f"+{capability}" for capability in capabilities)
        words += [f"--inh-caps={added}", f"--ambient-caps={added}"]
    return words


def interpreter_for(prefix: Sequence[str]) -> str:
    """One that this user may execute, with slotscope's modules."""
    probe = "import subprocess, sys, numpy, profiler.cli.main; sys.exit(subprocess.call([sys.executable, '-c', '']))"
    environment = dict(os.environ, PYTHONPATH=MODULES, PYTHONDONTWRITEBYTECODE="1")
    for python in (sys.executable, "/usr/bin/python3"):
        done = subprocess.run([*prefix, python, "-c", probe], cwd=ROOT, check=False, capture_output=True, env=environment)
        if done.returncode == 0:
            return python
    pytest.skip("no interpreter that another user may execute has slotscope's modules")


@pytest.fixture
def open_directory(tmp_path: Path) -> Iterator[Path]:
    """Where everybody may write."""
    directory = Path(tempfile.mkdtemp(prefix="slotscope-attach-"))
    directory.chmod(0o777)
    yield directory
    shutil.rmtree(directory)


@pytest.mark.parametrize("capabilities", [(), ("perfmon", "sys_ptrace")], ids=["none", "perfmon"])
def test_without_root(
    burner: StartBurner, attach: StartAttach, open_directory: Path, capabilities: tuple[str, ...], program: Path
) -> None:
    prefix = as_nobody(*capabilities)
    python = interpreter_for(prefix)
    copy = open_directory / "burner"
    shutil.copy(program, copy)
    target = burner("forever", program=copy)
    attached = attach(
        "--pid", str(target.pid), "--duration", "1", *FAST, prefix=prefix, python=python, store=open_directory / "store"
    )
    if capabilities:
        attached.end()
        store = open_store(open_directory / "store", create=False)
        (run,) = store.runs()
        assert not run.summary.failure
        assert run.summary.samples > 50
        return
    attached.end(code=1)
    message = attached.log.read_text()
    assert f"process {target.pid} (burner) belongs to root: run slotscope as root or as root" in message.replace("\n", "")
    assert (
        not (open_directory / "store/catalog.sqlite").exists()
        or not open_store(open_directory / "store", create=False).sessions()
    )


def wait_for_port(port: int) -> None:
    deadline = time.monotonic() + 30
    while True:
        with socket.socket() as attempt:
            if attempt.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.full
@pytest.mark.alone
def test_metrics_of_the_process(burner: StartBurner, attach: StartAttach, tmp_path: Path) -> None:
    """The page says 4 ms per observation; one that cannot be read is told before anything begins."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = Path(__file__).resolve().parents[1] / "support/loaded_service.py"
    page = subprocess.Popen([sys.executable, str(script), "page", str(port), "4"], stdin=subprocess.DEVNULL)
    try:
        wait_for_port(port)
        target = burner("forever")
        options = ("--metrics", f"http://127.0.0.1:{port}/metrics", "--metric", "handling=handling_seconds")
        attach("--pid", str(target.pid), "--duration", "2", "--window", "1", *options, *FAST).end()
        for capture in captures_of(tmp_path):
            found = {metric.name: metric.value for metric in capture.info.outcome.metrics}
            assert found["handling"] == pytest.approx(4e6)
    finally:
        page.kill()
        page.wait()
    refused = attach("--pid", str(target.pid), *options, *FAST)
    refused.end(code=1)
    assert "cannot be read: Connection refused" in refused.log.read_text()


def test_a_process_that_stands_still(burner: StartBurner, attach: StartAttach, tmp_path: Path) -> None:
    target = burner("forever")
    target.process.send_signal(signal.SIGSTOP)
    attached = attach("--pid", str(target.pid), "--duration", "1", *FAST)
    attached.end()
    assert f"was stopped by a signal or a debugger, and uses no CPU time until it is let go on (`kill -CONT {target.pid}`)" in (
        attached.log.read_text()
    )
    (capture,) = captures_of(tmp_path)
    assert len(capture.samples) == 0
    assert "at the end of a window the process stood still, stopped by a signal or a debugger" in capture.quality.notes
    python = attach("--python", "--pid", str(target.pid))
    python.end(code=1)
    assert f"process {target.pid} (burner) was stopped" in python.log.read_text()


@pytest.mark.full
@pytest.mark.alone
def test_process_in_a_mount_namespace(program: Path, attach: StartAttach, tmp_path: Path) -> None:
    """As in a container: its executable lies where only it sees it."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("needs root and unshare")
    inside = tmp_path / "inside"
    inside.mkdir()
    script = f"mount --bind {program.parent} {inside} && exec {inside}/burner forever"
    with (tmp_path / "inside.txt").open("wb") as output:
        process = subprocess.Popen(["unshare", "-m", "sh", "-c", script], stdin=subprocess.DEVNULL, stdout=output)
    try:
        wait_for_line(tmp_path / "inside.txt", "ready")
        assert list(inside.iterdir()) == []
        options = ("--frequency", "997", "--call-graph", "dwarf")
        printed = attach("--pid", str(process.pid), "--duration", "1", *options).end()
        (capture,) = captures_of(tmp_path)
        assert capture.quality.complete > 0.9 * capture.quality.samples
        assert "--debug-dir" not in printed
        report = json.loads(slotscope(tmp_path, "report", "last", "--by", "function", "--format", "json"))
        assert next(row for row in report["rows"] if row["name"] == "endless_part")["total"] > 0.9 * report["total"]
    finally:
        process.kill()
        process.wait()


@pytest.mark.full
@pytest.mark.alone
def test_perf_that_is_killed_is_replaced(burner: StartBurner, attach: StartAttach, tmp_path: Path) -> None:
    """Its window is left out, and says so; when it happens again at once, the session ends."""
    target = burner("forever")
    attached = attach("--pid", str(target.pid), "--window", "2", *FAST)
    attached.wait_until_recording()
    os.kill(min(perfs_of(tmp_path)), signal.SIGKILL)
    wait_for_line(attached.log, "window 1 ")
    wait_for_line(attached.log, "window 2 ")
    attached.end(signal.SIGINT)
    first, second, *_ = captures_of(tmp_path)
    assert "perf ended with status -9" in first.info.outcome.failure
    assert second.info.outcome.failure == ""
    assert len(second.samples) > 50


@pytest.mark.alone
def test_perf_that_is_killed_in_the_last_window_is_replaced(burner: StartBurner, attach: StartAttach, tmp_path: Path) -> None:
    """The rest of the duration is another window."""
    target = burner("forever")
    attached = attach("--pid", str(target.pid), "--duration", "2", "--window", "2", *FAST)
    attached.wait_until_recording()
    os.kill(min(perfs_of(tmp_path)), signal.SIGKILL)
    printed = attached.end()
    first, second = captures_of(tmp_path)
    assert "perf ended with status -9" in first.info.outcome.failure
    assert second.info.outcome.failure == ""
    assert len(second.samples) > 50
    assert "ended after its duration; 2 windows of burner, 1 of them left out" in printed


def test_window_is_kept_when_no_other_perf_can_attach(
    burner: StartBurner, attach: StartAttach, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first perf tries whether recording works, the second records."""
    calls, perf = tmp_path / "calls", tmp_path / "bin/perf"
    perf.parent.mkdir()
    perf.write_text(
        f'#!/bin/sh\n[ "$1" = record ] && echo . >> {calls}\n'
        f'[ "$1" = record ] && [ $(wc -l < {calls}) -gt 2 ] && echo refused today >&2 && exit 255\n'
        f'exec {shutil.which("perf")} "$@"\n'
    )
    perf.chmod(0o755)
    monkeypatch.setenv("PATH", str(perf.parent), prepend=":")
    target = burner("forever")
    attached = attach("--pid", str(target.pid), "--window", "2", *FAST)
    attached.end(code=1)
    assert "perf could not start recording: refused today" in attached.log.read_text()
    (capture,) = captures_of(tmp_path)
    assert capture.info.outcome.failure == ""
    assert len(capture.samples) > 50
    assert any("no other perf could attach" in note for note in capture.quality.notes)
