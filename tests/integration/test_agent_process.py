"""A real `slotscope agent` against an aggregator that the test controls: jobs, kills, clocks, hostile answers."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from profiler.codec.container import decode
from profiler.model.capture import Capture
from profiler.model.run import RunMode
from profiler.protocol.job import JobKind, JobOrder, JobState, OrderedMetric
from support import attached_program
from support.agent_process import AgentProcess, agent, write_config
from support.attached_program import Burner
from support.fake_aggregator import TOKEN, Asked, FakeAggregator, serving

MARK = "slotscope-agent-test"
SECOND_NS = 10**9
# CPU time and pages; perf has no part in it.
WATCH = JobOrder("watch", JobKind.ATTACH, "node", "x", "s", "i1", 0, window_s=1.0, is_profiled=False)
RUN = JobOrder("run", JobKind.RUN, "load", "base", "s", "i1", 0, is_profiled=False)


@pytest.fixture
def fake() -> Iterator[FakeAggregator]:
    with serving(FakeAggregator()) as server:
        yield server


@pytest.fixture
def started() -> Iterator[list[AgentProcess]]:
    agents: list[AgentProcess] = []
    yield agents
    for each in agents:
        each.stop()


def workload(seconds: float = 0.1, also: str = "") -> str:
    """Burns CPU time, and says so."""
    program = (
        f"import time; end = time.process_time() + {seconds}\\nwhile time.process_time() < end: pass\\n{also}"
        "print('took 12.5 ms')"
    )
    return f"""
[[workload]]
name = "load"
command = ["{{binary}}", "-c", "{program}", "{MARK}"]
variants = {{ base = "{sys.executable}" }}
"""


def target(pid: int) -> str:
    return f"""
[[target]]
name = "node"
pid = {pid}
variants = ["x", "y"]
swap = ["{sys.executable}", "-c", "import sys; print('now', sys.argv[1])", "{{variant}}"]
"""


def start(started: list[AgentProcess], tmp_path: Path, server: str, body: str, limits: str = "cpu_percent = 0") -> AgentProcess:
    made = agent(write_config(tmp_path / "agent", server, body, limits=limits)).start()
    started.append(made)
    return made


def captures_of(fake: FakeAggregator, job: str) -> list[Capture]:
    return [decode(data, sha) for sha, data in fake.committed().items() if fake.offers[sha].job == job]


def wait_for_captures(fake: FakeAggregator, job: str) -> list[Capture]:
    """All that the final report names."""
    report = fake.wait_until_final(job)
    fake.wait_for(lambda: set(report.captures) <= set(fake.commits), what=f"captures of {job}")
    return captures_of(fake, job)


def running_with(it: AgentProcess, mark: str) -> list[int]:
    """Processes that this agent started, with a word in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                is_its = it.mark.encode() in (entry / "environ").read_bytes().split(b"\0")
                if is_its and mark.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
    return found


def gone_within(seconds: float, it: AgentProcess, *marks: str) -> bool:
    deadline = time.monotonic() + seconds
    while any(running_with(it, mark) for mark in marks):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def test_what_its_file_names_is_done_and_the_rest_refused(
    fake: FakeAggregator, started: list[AgentProcess], tmp_path: Path
) -> None:
    metric = OrderedMetric("took", "regex:took (.* ms)")
    start_at = time.time_ns() + 6 * SECOND_NS
    fake.orders = [
        WATCH,
        JobOrder("run", JobKind.RUN, "load", "base", "s", "i1", 0, start_at, runs=2, is_profiled=False, metrics=(metric,)),
        JobOrder("swap", JobKind.SWAP, "node", "y", "s", "i1", 0),
        JobOrder("other", JobKind.RUN, "../load", "base", "s", "i1", 0),
        JobOrder("shell", JobKind.SWAP, "node", "y; touch /tmp/x", "s", "i1", 0),
        JobOrder("../../etc/passwd", JobKind.SWAP, "node", "y", "s", "i1", 0),
    ]
    it = start(started, tmp_path, fake.url, workload(0.2) + target(os.getpid()))
    runs = wait_for_captures(fake, "run")
    assert [capture.info.identity.position for capture in runs] == [0, 1]
    assert {capture.info.identity.mode for capture in runs} == {RunMode.PLAIN}
    for capture in runs:
        assert capture.info.outcome.metrics[0].value == 12.5e6
        assert capture.info.outcome.user_ns + capture.info.outcome.system_ns > 0.2e9
    report = fake.last("run")
    assert report is not None
    assert report.state is JobState.DONE, report.detail
    assert 0 <= report.begun_at_ns - start_at < 50_000_000
    assert fake.states("run").index("ready") < fake.states("run").index("running")
    assert fake.wait_until_final("swap").detail == "node is y: now y"
    assert len(wait_for_captures(fake, "watch")) == 1
    assert "no workload '../load'" in fake.wait_until_final("other").detail
    assert fake.wait_until_final("shell").state is JobState.REFUSED
    assert it.end() == 0
    assert not [asked for asked in fake.asked if "passwd" in asked.path and "known" not in asked.path]


@pytest.mark.perf
@pytest.mark.usefixtures("perf")
def test_it_profiles_a_running_program_and_a_workload_from_one_moment_on(
    fake: FakeAggregator, started: list[AgentProcess], tmp_path: Path
) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    program = attached_program.build(tmp_path)
    burner: Burner = attached_program.start(program, tmp_path / "burner.txt", "forever")
    try:
        start(started, tmp_path, fake.url, workload(0.5) + target(burner.pid))
        fake.wait_for(lambda: fake.hellos)
        start_at = time.time_ns() + 5 * SECOND_NS
        common = {"frequency_hz": 499, "call_graph": "fp", "start_at_ns": start_at}
        fake.orders = [
            JobOrder("attach", JobKind.ATTACH, "node", "x", "s", "i1", 0, window_s=2.0, windows=2, **common),  # type: ignore[arg-type]
            JobOrder("run", JobKind.RUN, "load", "base", "s", "i2", 0, **common),  # type: ignore[arg-type]
        ]
        windows, runs = wait_for_captures(fake, "attach"), wait_for_captures(fake, "run")
        assert [capture.info.identity.round for capture in windows] == [0, 1]
        for capture in (*windows, *runs):
            cpu_ns = capture.info.outcome.user_ns + capture.info.outcome.system_ns
            # A sample is 1/499 s of CPU time; Poisson noise and the edges are far below a third.
            assert 0.66 < len(capture.samples) / 499 / (cpu_ns / 1e9) < 1.5
        for job in ("attach", "run"):
            report = fake.last(job)
            assert report is not None
            assert report.state is JobState.DONE, report.detail
            assert abs(report.begun_at_ns - start_at) < 50_000_000
    finally:
        burner.kill()


@pytest.mark.perf
@pytest.mark.usefixtures("perf")
def test_a_window_in_which_the_process_ended_is_no_window_of_a_round(
    fake: FakeAggregator, started: list[AgentProcess], tmp_path: Path
) -> None:
    """Half a window holds half of the CPU time of a whole one, and would be held against whole ones of other hosts."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    burner: Burner = attached_program.start(attached_program.build(tmp_path), tmp_path / "burner.txt", "forever")
    try:
        start(started, tmp_path, fake.url, target(burner.pid))
        fake.orders = [JobOrder("attach", JobKind.ATTACH, "node", "x", "s", "i1", 0, window_s=4.0, frequency_hz=99)]
        fake.wait_for(lambda: "running" in fake.states("attach"), what="the window to begin")
        time.sleep(1.5)
    finally:
        burner.kill()
    (window,) = wait_for_captures(fake, "attach")
    assert window.info.outcome.wall_ns < 3.5 * SECOND_NS
    report = fake.wait_until_final("attach")
    assert report.state is JobState.FAILED
    assert "ended; 1 window; 1 were ordered, 0 are whole and count" in report.detail


def _random_kills(fake: FakeAggregator, it: AgentProcess, kills: int, seed: int) -> set[str]:
    """Job after job, and a SIGKILL at any time in between; SHA-256 of every capture that was seen whole in the spool."""
    import hashlib

    generator, seen = random.Random(seed), set()
    for number in range(kills):
        fake.orders.append(JobOrder(f"job{number}", JobKind.RUN, "load", "base", "s", "i1", number, runs=3, is_profiled=False))
        time.sleep(generator.uniform(0.3, 4.0))
        it.kill()
        assert gone_within(8, it, MARK, "collectors.agent.jobs.job_process"), "a workload outlived its agent"
        for path in (it.spool / "store" / "captures").glob("*/*.capture"):
            seen.add(hashlib.sha256(path.read_bytes()).hexdigest())
        it.start()
    return seen


@pytest.mark.parametrize("kills", [4, pytest.param(200, marks=pytest.mark.full)])
def test_kill_9_at_any_time_loses_no_capture_and_doubles_none(
    fake: FakeAggregator, started: list[AgentProcess], tmp_path: Path, kills: int
) -> None:
    it = start(started, tmp_path, fake.url, workload(0.1))
    fake.wait_for(lambda: fake.hellos)
    seen = _random_kills(fake, it, kills, seed=kills)
    finals = [fake.wait_until_final(order.id) for order in fake.orders]
    fake.wait_for(lambda: {sha for report in finals for sha in report.captures} <= set(fake.commits), what="all captures")
    fake.wait_for(lambda: not list((it.spool / "store").rglob("*.capture")), what="an empty spool")
    assert seen <= set(fake.commits)
    for report in finals:
        assert report.state in (JobState.DONE, JobState.FAILED)
        assert len(report.captures) == 3 if report.state is JobState.DONE else "the agent ended" in report.detail
    for order, report in zip(fake.orders, finals, strict=True):
        uploaded = captures_of(fake, order.id)
        assert len(uploaded) == len(report.captures)
        positions = [capture.info.identity.position for capture in uploaded]
        assert sorted(positions) == list(range(len(positions)))


def test_a_target_is_swapped_by_one_job_at_a_time_and_not_watched_meanwhile(
    fake: FakeAggregator, started: list[AgentProcess], tmp_path: Path
) -> None:
    """Two at once leave it as either of their variants, and a window beside one holds both."""
    told = tmp_path / "told"
    command = (
        f"import sys, time; f = open('{told}', 'a', 1); print('to', sys.argv[1], file=f); time.sleep(1.5); "
        "print('is', sys.argv[1], file=f)"
    )
    body = f"""
[[target]]
name = "node"
pid = {os.getpid()}
variants = ["x", "y"]
swap = ["{sys.executable}", "-c", "{command}", "{{variant}}"]
"""
    fake.orders = [
        JobOrder("first", JobKind.SWAP, "node", "x", "s", "i1", 0),
        replace(WATCH, id="watch"),
        JobOrder("second", JobKind.SWAP, "node", "y", "s", "i1", 0),
    ]
    start(started, tmp_path, fake.url, body)
    for job in ("first", "watch", "second"):
        report = fake.wait_until_final(job)
        assert report.state is JobState.DONE, report.detail
    assert told.read_text().split("\n")[:-1] == ["to x", "is x", "to y", "is y"]
    (window,) = wait_for_captures(fake, "watch")
    began_s = datetime.fromisoformat(window.info.started_at).timestamp()
    assert began_s + 0.5 < told.stat().st_mtime - 1.5, "watched between the two"


def test_a_job_that_the_agent_does_not_know_any_more_is_told_to_be_over(
    fake: FakeAggregator, started: list[AgentProcess], tmp_path: Path
) -> None:
    """Its spool was lost, or the server's database is an older one: else the server would tell it to end the job for ever."""
    fake.orders = [WATCH]
    it = start(started, tmp_path, fake.url, target(os.getpid()))
    done = fake.wait_until_final("watch")
    fake.reports.clear()
    fake.cancelled = ["unheard-of", "watch", "../etc"]
    assert fake.wait_until_final("unheard-of").state is JobState.CANCELLED
    assert fake.wait_until_final("watch") == done, "what became of it is told again"
    assert it.end() == 0
    assert set(fake.reports) == {"unheard-of", "watch"}


def test_a_server_that_goes_and_comes_back_is_found_again(started: list[AgentProcess], tmp_path: Path) -> None:
    fake = FakeAggregator()
    with serving(fake):
        it = start(started, tmp_path, fake.url, workload(1.5))
        fake.orders = [RUN]
        fake.wait_for(lambda: "running" in fake.states("run"))
    it.wait_for_log("trying again")
    it.wait_for_log("job run: done")
    assert len(list((it.spool / "store").rglob("*.capture"))) == 1
    with serving(fake):
        assert len(wait_for_captures(fake, "run")) == 1
        it.wait_for_log("the server answers again")


def _hostile_answers() -> list[tuple[int, bytes, dict[str, str]]]:
    order = b'{"id": "../../x", "kind": "run", "name": "/bin/sh", "variant": "x", "session": "s", "instance": "i", "round": 0}'
    return [
        (200, b'{"orders": [' + order + b'], "cancelled": []}', {}),
        (200, b'{"orders": [{"id": "x", "command": ["touch", "/tmp/x"]}]}', {}),
        (200, b'{"orders": {}, "cancelled": 7}', {}),
        (200, b'{"cancelled": ["../../../etc", "run"]}', {}),
        (200, b"[" * 5000, {}),
        (200, b'{"protocol": 99, "agent": "x", "hello_s": 1e308}', {}),
        (200, b" " * (3 << 20), {}),
        (302, b"", {"Location": "file:///etc/passwd"}),
        (500, b"Bearer " + TOKEN.encode(), {"Content-Type": "application/problem+json"}),
        (500, b'{"detail": "your token is ' + TOKEN.encode() + b'"}', {"Content-Type": "application/problem+json"}),
        (429, b"{}", {"Retry-After": "1"}),
        (204, b"", {}),
    ]


def test_a_hostile_server_gets_nothing_and_the_agent_serves_an_honest_one_after_it(
    fake: FakeAggregator, started: list[AgentProcess], tmp_path: Path
) -> None:
    to_jobs = _hostile_answers()
    to_hello = to_jobs[5:10]
    asked_before = {"hello": 0, "jobs": 0}

    def hostile(asked: Asked, handler: BaseHTTPRequestHandler) -> bool:
        """Every second time, so that the agent does not become slow."""
        kind = "hello" if asked.path.endswith("/hello") else "jobs" if "/jobs?" in asked.path else ""
        answers = to_hello if kind == "hello" else to_jobs
        if not kind or asked_before[kind] >= 2 * len(answers):
            return False
        number, is_honest = divmod(asked_before[kind], 2)
        asked_before[kind] += 1
        if is_honest and kind == "hello":
            return False
        status, body, headers = answers[number] if not is_honest else (200, b"{}", {})
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        with contextlib.suppress(OSError):
            handler.wfile.write(body)
        return True

    fake.answer = hostile
    before = set(tmp_path.rglob("*"))
    it = start(started, tmp_path, fake.url, workload())
    fake.wait_for(
        lambda: asked_before["jobs"] == 2 * len(to_jobs) and asked_before["hello"] == 2 * len(to_hello), 180, "hostile answers"
    )
    fake.orders = [replace(RUN, id="honest")]  # of "run" the agent has said that it does not know it
    assert len(wait_for_captures(fake, "honest")) == 1
    assert it.end() == 0
    log = it.log.read_text()
    assert TOKEN not in log
    assert "Traceback" not in log
    changed = set(tmp_path.rglob("*")) - before
    assert {path.relative_to(tmp_path).parts[:2] for path in changed} <= {
        ("agent",),
        *(("agent", name) for name in ("agent.toml", "token", "spool", "agent.log")),
    }


def test_a_refused_token_is_said_once_and_tried_rarely(
    fake: FakeAggregator, started: list[AgentProcess], tmp_path: Path
) -> None:
    made = agent(write_config(tmp_path / "agent", fake.url, workload(), token="slsc_" + "w" * 43)).start()
    started.append(made)
    made.wait_for_log("the token is not accepted")
    time.sleep(3)
    assert len(fake.asked) <= 3  # tries are at least 5 s apart
    assert "slsc_" not in made.log.read_text()
    assert made.end() == 0


def test_the_token_is_in_no_process_list_no_log_and_no_capture(
    fake: FakeAggregator, started: list[AgentProcess], tmp_path: Path
) -> None:
    it = start(started, tmp_path, fake.url, workload(1.0))
    fake.orders = [RUN]
    fake.wait_for(lambda: "running" in fake.states("run"))
    looked_at = 0
    for pid in (it.pid, *running_with(it, MARK), *running_with(it, "collectors.agent.jobs.job_process")):
        for name in ("cmdline", "environ"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                assert TOKEN.encode() not in Path("/proc", str(pid), name).read_bytes()
                looked_at += 1
    assert looked_at >= 6
    wait_for_captures(fake, "run")
    assert all(TOKEN.encode() not in data for data in fake.committed().values())
    assert TOKEN not in it.log.read_text()
    assert all(TOKEN.encode() not in path.read_bytes() for path in it.spool.rglob("*") if path.is_file())


@pytest.mark.parametrize("step_s", [0, -3600, 90])
def test_a_wrong_wall_clock_and_steps_of_it_do_not_move_the_beginning(
    fake: FakeAggregator, started: list[AgentProcess], tmp_path: Path, step_s: int
) -> None:
    shift = tmp_path / "shift"
    shift.write_text(str(5 * SECOND_NS))
    it = agent(write_config(tmp_path / "agent", fake.url, workload(), limits="cpu_percent = 0"), SHIFT_FILE=str(shift))
    it.launcher = ("-m", "support.shifted_agent")
    roots = (str(Path(__file__).parents[2]), str(Path(__file__).parents[1]))
    it.environment = {**it.environment, "PYTHONPATH": os.pathsep.join(roots)}
    started.append(it.start())
    fake.wait_for(lambda: fake.hellos)
    clock = fake.hellos[0].clock
    assert clock is not None
    assert abs(clock.offset_ns + 5 * SECOND_NS) <= clock.error_ns + 1_000_000
    start_at = time.time_ns() + 4 * SECOND_NS
    fake.orders = [JobOrder("run", JobKind.RUN, "load", "base", "s", "i1", 0, start_at, is_profiled=False)]
    fake.wait_for(lambda: "ready" in fake.states("run"))
    shift.write_text(str((5 + step_s) * SECOND_NS))
    report = fake.wait_until_final("run")
    assert report.state is JobState.DONE, report.detail
    assert 0 <= report.begun_at_ns - start_at < 50_000_000


def test_a_moment_that_has_passed_fails_the_job(fake: FakeAggregator, started: list[AgentProcess], tmp_path: Path) -> None:
    start(started, tmp_path, fake.url, workload() + target(os.getpid()))
    late = time.time_ns() - SECOND_NS
    fake.orders = [
        JobOrder("run", JobKind.RUN, "load", "base", "s", "i1", 0, late, is_profiled=False),
        JobOrder("watch", JobKind.ATTACH, "node", "x", "s", "i1", 0, late, window_s=1.0, is_profiled=False),
    ]
    for job in ("run", "watch"):
        report = fake.wait_until_final(job)
        assert report.state is JobState.FAILED
        assert "the moment to begin had passed" in report.detail
        assert report.captures == ()


def test_cancelled_and_terminated_jobs_end_with_all_they_started(
    fake: FakeAggregator, started: list[AgentProcess], tmp_path: Path
) -> None:
    it = start(started, tmp_path, fake.url, workload(300) + target(os.getpid()))
    long_watch = JobOrder("watch", JobKind.ATTACH, "node", "x", "s", "i1", 0, window_s=1.0, windows=600, is_profiled=False)
    fake.orders = [RUN]
    fake.wait_for(lambda: "running" in fake.states("run"))
    fake.cancelled = ["run"]
    report = fake.wait_until_final("run")
    assert (report.state, report.detail) == (JobState.CANCELLED, "cancelled; the end was asked for")
    assert gone_within(5, it, MARK)
    fake.cancelled = []
    fake.orders = [long_watch]
    fake.wait_for(lambda: fake.commits, what="the first window")
    assert it.end() == 0
    report = fake.wait_until_final("watch", 5)
    assert report.state is JobState.FAILED
    assert report.detail.startswith("the agent was told to end")
    assert gone_within(5, it, "collectors.agent.jobs.job_process")
    it.start()
    fake.wait_for(lambda: set(report.captures) <= set(fake.commits), what="windows of before the end")


def test_a_full_spool_ends_jobs_takes_none_and_heals(fake: FakeAggregator, started: list[AgentProcess], tmp_path: Path) -> None:
    limits = 'cpu_percent = 0\nspool_bytes = "1 MiB"'
    it = start(started, tmp_path, fake.url, workload() + target(os.getpid()), limits=limits)
    fake.orders = [JobOrder("watch", JobKind.ATTACH, "node", "x", "s", "i1", 0, window_s=1.0, windows=600, is_profiled=False)]
    fake.wait_for(lambda: fake.commits, what="a window")
    ballast = it.spool / "ballast"
    ballast.write_bytes(bytes(1 << 20))
    report = fake.wait_until_final("watch")
    assert report.state is JobState.FAILED
    assert report.detail.startswith("the spool is full")
    fake.wait_for(lambda: set(report.captures) <= set(fake.commits), what="what was captured")
    fake.orders.append(RUN)
    fake.wait_for(lambda: "the spool is full" in fake.hellos[-1].spool.problem)
    assert fake.states("run") == []
    ballast.unlink()
    assert fake.wait_until_final("run").state is JobState.DONE
    assert fake.states("run")[0] == "accepted"


def test_profiling_that_costs_more_than_is_allowed_is_ended(
    fake: FakeAggregator, started: list[AgentProcess], tmp_path: Path
) -> None:
    # 0.1 % of a minute is 60 ms of CPU time, which the job's interpreter alone takes.
    start(started, tmp_path, fake.url, target(os.getpid()), limits="cpu_percent = 0.1")
    fake.orders = [JobOrder("watch", JobKind.ATTACH, "node", "x", "s", "i1", 0, window_s=1.0, windows=60, is_profiled=False)]
    report = fake.wait_until_final("watch")
    assert report.state is JobState.FAILED
    assert "% of a CPU over a minute, and this agent allows 0.1 %" in report.detail


def test_check_says_what_it_would_offer_and_sends_nothing(fake: FakeAggregator, tmp_path: Path) -> None:
    import subprocess

    config = write_config(tmp_path / "agent", fake.url, workload() + target(1))
    command = [sys.executable, "-m", "profiler.cli.main", "agent", "--config", str(config), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "workload load: {binary} -c" in done.stdout
    assert "target node: process 1, becomes x or y" in done.stdout
    assert "permissions" in done.stdout
    assert TOKEN not in done.stdout + done.stderr
    assert fake.asked == []
    assert not (tmp_path / "agent" / "spool").exists()
