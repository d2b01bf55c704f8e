"""What being watched costs: a program's own timing of fixed work under none, `slotscope attach`, and windows of an agent.

    python tests/bench/attach_overhead.py [--folder DIR] [--rounds N] [--seconds S]

Every run is a fresh process of the program, and rounds are interleaved.  What watches is attached before the work begins.
Printed are medians of the program's own wall and CPU time, the ratios to none (median, and the smallest and largest of any
round), and the CPU of slotscope and perf in percent of one CPU, while the work lasts.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from timing import environment

from collectors.processes.process_status import all_processes, tree
from collectors.processes.process_times import cpu_usage
from profiler.protocol.job import JobKind, JobOrder, JobState
from profiler.service.access.token_registry import Scope, Token, digest_of, new_secret
from profiler.service.aggregator import Aggregator, open_aggregator
from profiler.store.records import SessionStart

_SOURCE = Path(__file__).with_name("steady.c")
_NAME = "slsc-steady"
_SLOTSCOPE = (sys.executable, "-m", "profiler.cli.main")
_PROBE_ITERATIONS = 2_000_000
_WINDOW_S = 2.0
_PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Run:
    """``watch_percent``: CPU time of slotscope and perf by the program's wall time."""

    wall_s: float
    cpu_s: float
    watch_percent: float


# Given the program's process ID: attaches, and yields the process whose tree watches, 0 = none.
Watcher = Callable[[int], AbstractContextManager[int]]


@contextlib.contextmanager
def unwatched(_: int) -> Iterator[int]:
    yield 0


def attached(folder: Path, frequency: int) -> Watcher:
    """`slotscope attach` by process ID, which ends with the program."""

    @contextlib.contextmanager
    def watch(pid: int) -> Iterator[int]:
        with tempfile.TemporaryDirectory(dir=folder) as store:
            log = Path(store, "log")
            options = ["--pid", str(pid), "--window", str(_WINDOW_S), "--frequency", str(frequency), "--call-graph", "fp"]
            with log.open("wb") as errors:
                process = subprocess.Popen(
                    [*_SLOTSCOPE, "--store", f"{store}/store", "attach", *options],
                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, env=environment(folder),
                )  # fmt: skip
            try:
                _wait_until(lambda: "; windows of " in log.read_text(), log)
                yield process.pid
            finally:
                process.terminate()
                process.wait()

    return watch


@dataclass(frozen=True, slots=True)
class _AgentAtWork:
    """One aggregator and one agent that wait for orders all the time."""

    aggregator: Aggregator
    session: str
    pid: int
    log: Path

    def watcher(self, frequency: int) -> Watcher:
        @contextlib.contextmanager
        def watch(_: int) -> Iterator[int]:
            now_ns = time.time_ns()
            order = JobOrder(
                f"bench-{now_ns}-aaaaaaaa", JobKind.ATTACH, "steady", "bench", self.session, "steady", 0,
                windows=30, window_s=_WINDOW_S, frequency_hz=frequency, call_graph="fp",
            )  # fmt: skip
            self.aggregator.jobs.add("bench", order, now_ns)
            _wait_until(lambda: self._state(order.id) is JobState.RUNNING, self.log)
            yield self.pid
            self.aggregator.jobs.cancel(order.id, "measured", time.time_ns())
            _wait_until(lambda: self._state(order.id).is_final, self.log)

        return watch

    def _state(self, job: str) -> JobState:
        found = self.aggregator.jobs.job(job)
        if found is None:
            raise SystemExit(f"job {job} is gone")
        if found.report.state in (JobState.REFUSED, JobState.LOST):
            raise SystemExit(f"job {job}: {found.report.detail}")
        return found.report.state


@contextlib.contextmanager
def agent_at_work(folder: Path) -> Iterator[_AgentAtWork]:
    directory = folder / "agent"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    aggregator = open_aggregator(directory / "store", create=True)
    secret = new_secret()
    aggregator.tokens.add(Token("bench", Scope.AGENT, time.time_ns()), digest_of(secret))
    (directory / "token").touch(mode=0o600)
    (directory / "token").write_text(secret)
    serve = [*_SLOTSCOPE, "--store", str(directory / "store"), "serve", "--port", "0"]
    log = directory / "log"
    with log.open("wb") as errors, contextlib.ExitStack() as stack:
        server = subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment(folder))
        stack.callback(_end, server)
        assert server.stdout is not None
        url = re.search(r"http://127\.0\.0\.1:\d+", server.stdout.readline())
        if url is None:
            raise SystemExit(f"the aggregator did not start: {log.read_text()}")
        config = f'server = "{url[0]}"\ntoken_file = "token"\nspool = "spool"\n[limits]\ncpu_percent = 0\n'
        (directory / "agent.toml").write_text(f'{config}[[target]]\nname = "steady"\ncomm = "^{_NAME}$"\n')
        command = [*_SLOTSCOPE, "agent", "--config", str(directory / "agent.toml")]
        agent = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, env=environment(folder))
        stack.callback(_end, agent)
        _wait_until(lambda: bool(aggregator.agents.agents()), log)
        session = aggregator.store.begin_session(SessionStart("2026-01-01T00:00:00+00:00", "", (), 0, has_rounds=True))
        yield _AgentAtWork(aggregator, session, agent.pid, log)


def _end(process: subprocess.Popen[bytes] | subprocess.Popen[str]) -> None:
    process.terminate()
    process.wait()


def _wait_until(is_so: Callable[[], bool], log: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not is_so():
        if time.monotonic() > deadline:
            raise SystemExit(f"nothing happened for {_PATIENCE_S:.0f} s: {log.read_text()[-2000:]}")
        time.sleep(0.05)


def measured(program: Path, iterations: int, watcher: Watcher) -> Run:
    """One run of the program, watched."""
    with subprocess.Popen([str(program), str(iterations)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        with watcher(process.pid) as pid:
            before_ns = _used_ns(pid)
            process.stdin.write("go\n")
            process.stdin.flush()
            wall_s, cpu_s = map(float, process.stdout.readline().split())
            used_ns = _used_ns(pid) - before_ns
            process.stdin.close()
    return Run(wall_s, cpu_s, 100 * used_ns / 1e9 / wall_s)


def _used_ns(pid: int) -> int:
    """With everything that it started; what ended and was waited for counts in ticks."""
    return cpu_usage(tree({pid}, all_processes())).total_ns if pid else 0


def build(folder: Path) -> Path:
    program = folder / _NAME
    flags = ["-O2", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"]
    subprocess.run(["gcc", *flags, "-o", str(program), str(_SOURCE)], check=True)
    return program


def print_table(runs: dict[str, list[Run]]) -> None:
    (none, *_) = runs.values()
    print(f"{'':24}{'wall':>10}{'cpu':>10}{'wall ratio':>12}{'(rounds)':>16}{'cpu ratio':>11}{'watching':>10}")
    for name, found in runs.items():
        ratios = [run.wall_s / beside.wall_s for run, beside in zip(found, none, strict=True)]
        cpu_ratios = [run.cpu_s / beside.cpu_s for run, beside in zip(found, none, strict=True)]
        wall_s, cpu_s = (statistics.median(getattr(run, field) for run in found) for field in ("wall_s", "cpu_s"))
        spread = f"({min(ratios):.3f}-{max(ratios):.3f})"
        watching = statistics.median(run.watch_percent for run in found)
        print(
            f"{name:24}{wall_s:9.3f}s{cpu_s:9.3f}s{statistics.median(ratios):12.4f}{spread:>16}"
            f"{statistics.median(cpu_ratios):11.4f}{watching:9.1f}%"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("/tmp/slotscope-bench"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0, help="of work in each run (default: 4)")
    arguments = parser.parse_args()
    folder: Path = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    program = build(folder)
    probe_s = min(measured(program, _PROBE_ITERATIONS, unwatched).cpu_s for _ in range(3))
    iterations = round(_PROBE_ITERATIONS * arguments.seconds / probe_s)
    print(f"\nbeing watched: {arguments.rounds} interleaved rounds, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with agent_at_work(folder) as agent:
        watchers = {
            "none": unwatched,
            "attach, 99 Hz": attached(folder, 99),
            "attach, 997 Hz": attached(folder, 997),
            "agent's windows, 99 Hz": agent.watcher(99),
            "agent's windows, 997 Hz": agent.watcher(997),
        }
        runs: dict[str, list[Run]] = {name: [] for name in watchers}
        for _ in range(arguments.rounds):
            for name, watcher in watchers.items():
                runs[name].append(measured(program, iterations, watcher))
    print_table(runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
