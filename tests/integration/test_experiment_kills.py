"""`slotscope experiment run` killed with SIGKILL at random points, and taken up again: in plain runs, in builds, under perf,
and with a service under load.

Everything that is run starts a helper that would live for a minute: what a killed session leaves behind is seen.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from profiler.model.run import RunMode
from profiler.store.records import StoredRun
from profiler.store.store import Store, open_store

QUICK, FULL = 2, 50  # trials of each kind
QUIET_S = 20.0
HELPED = "sleep 60 & helper=$!\n{}\nkill $helper\n"
Runs = Counter[tuple[str, RunMode, int]]

HEAD = """
[experiment]
name = "killed"
seed = 11
retries = 0
"""
METRIC = """
[[metric]]
name = "took"
regex = 'part (\\d+ ms)'
pick = "sum"
"""
# Half of it runs as well, and takes 5 ms.
PROGRAM = ("#!/bin/sh\necho part 5 ms\n", HELPED.format("echo part 7 ms\ni=0; while [ $i -lt $LOOPS ]; do i=$((i+1)); done"))
TOOK_NS = 12e6

# As make: nothing to do for what is newer than its source.
BUILD = """
if [ "$OUT" -nt "$SOURCE" ]; then exit 0; fi
sleep 60 & helper=$!
head -n 2 "$SOURCE" >"$OUT"
chmod +x "$OUT"
sleep 0.2
tail -n +3 "$SOURCE" >>"$OUT"
kill $helper
"""

SERVICE = """
import socket, sys
served = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    served.accept()[0].close()
"""


@dataclass(frozen=True)
class Kind:
    """``write``: puts the plan and what it needs into a directory.  ``lines``: of its output, behind one of which it is killed
    after up to ``delay_s``.  ``runs``: that there must be in the end."""

    write: Callable[[Path], None]
    lines: int
    delay_s: float
    runs: Runs


def of_arms(arms: tuple[str, ...], rounds: int, modes: tuple[RunMode, ...] = (RunMode.PLAIN,)) -> Runs:
    return Counter((arm, mode, number) for arm in arms for mode in modes for number in range(rounds))


def write_program(path: Path, loops: int) -> None:
    path.write_text("".join(PROGRAM).replace("$LOOPS", str(loops)))
    path.chmod(0o755)


def plain_plan(directory: Path) -> None:
    write_program(directory / "program", 2000)
    text = HEAD + 'runs = 4\nprofile = "none"\naa = true\ncommand = ["{binary}"]\n'
    text += '[[variant]]\nname = "a"\nbinary = "./program"\n[[variant]]\nname = "b"\nbinary = "./program"\n'
    (directory / "plan.toml").write_text(text + METRIC)


def profiled_plan(directory: Path) -> None:
    write_program(directory / "program", 60_000)
    text = HEAD + 'runs = 3\naa = true\ncall_graph = "none"\ncommand = ["{binary}"]\n'
    (directory / "plan.toml").write_text(text + '[[variant]]\nname = "a"\nbinary = "./program"\n' + METRIC)


def built_plan(directory: Path) -> None:
    """Both variants are built, and built once more for a profile, which is not taken; one is built again after an edit, too,
    which would make a half binary whole."""
    (directory / "build.sh").write_text(BUILD)
    text = HEAD + 'runs = 3\nprofile = "none"\ncommand = ["{binary}"]\n'
    for name in ("a", "b"):
        write_program(directory / f"{name}.source", 100)
        text += f'[[variant]]\nname = "{name}"\nbinary = "{{build_dir}}/program"\nbuild = ["/bin/sh", "build.sh"]\n'
        text += f'build_env = {{ OUT = "{{build_dir}}/program", SOURCE = "{name}.source" }}\n'
        text += f'profile_build = ["/bin/sh", "-c", "sleep 0.1; cp {name}.source {{build_dir}}/profiled"]\n'
        text += 'profile_binary = "{build_dir}/profiled"\n'
        if name == "b":
            text += '[variant.rebuild]\ncommand = ["/bin/sh", "build.sh"]\n'
            text += 'edit = { file = "b.source", find = "part 7", replace = "part 8" }\n'
    (directory / "plan.toml").write_text(text + METRIC)


def service_plan(directory: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    (directory / "port").write_text(str(port))
    (directory / "service.py").write_text(SERVICE)
    (directory / "program").write_text(f"#!/bin/sh\nsleep 60 &\n{sys.executable} -I -S {directory}/service.py $1 &\nwait\n")
    (directory / "program").chmod(0o755)
    text = HEAD + 'runs = 3\ncall_graph = "none"\nprimary = "took"\n'
    text += '[[variant]]\nname = "a"\nbinary = "./program"\n[[variant]]\nname = "b"\nbinary = "./program"\n'
    text += f'[[load]]\nname = "steady"\nservice = ["{{binary}}", "{port}"]\nready = {{ port = {port}, timeout = 60 }}\n'
    text += f'command = ["/bin/sh", "-c", {HELPED.format("sleep 0.1; echo part 12 ms")!r}]\n'
    (directory / "plan.toml").write_text(text + METRIC + 'from = "steady"\n')


KINDS = {
    "plain": Kind(plain_plan, 16, 0.08, of_arms(("a", "a-again", "b"), 4)),
    "built": Kind(built_plan, 5, 0.3, of_arms(("a", "b"), 3)),
    "profiled": Kind(profiled_plan, 16, 0.4, of_arms(("a", "a-again"), 3, (RunMode.PLAIN, RunMode.PROFILED))),
    "service": Kind(service_plan, 15, 0.5, of_arms(("a", "b"), 3, (RunMode.PLAIN, RunMode.PROFILED))),
}
TRIALS = [
    pytest.param(kind, trial, marks=[pytest.mark.full] if trial >= QUICK else [], id=f"{kind}-{trial}")
    for kind in KINDS
    for trial in range(FULL)
]


def slotscope(directory: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "profiler.cli.main", "--store", str(directory / "store"), *arguments]


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


def killed_at_random(directory: Path, kind: Kind, generator: random.Random) -> None:
    last = generator.randrange(kind.lines)
    command = slotscope(directory, "experiment", "run", "plan.toml")
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=directory, env=ENVIRONMENT
    ) as process:
        assert process.stderr is not None
        for number, _ in enumerate(process.stderr):
            if number == last:
                break
        time.sleep(generator.uniform(0.0, kind.delay_s))
        process.send_signal(signal.SIGKILL)


def processes_in(directory: Path) -> dict[int, str]:
    """What works in the directory, as everything does that a session there starts: process IDs and command lines."""
    found = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and Path(os.readlink(entry / "cwd")).is_relative_to(directory):
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    return found


def await_quiet(directory: Path) -> None:
    deadline = time.monotonic() + QUIET_S
    while (left := processes_in(directory)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert left == {}


def taken_up(directory: Path) -> subprocess.CompletedProcess[str]:
    """Resumed; or, where no session had begun, begun."""
    for resume in ("--resume",), ():
        command = slotscope(directory, "experiment", "run", "plan.toml", *resume)
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=directory, env=ENVIRONMENT)
        if not (resume and "was cut short; start one without --resume" in done.stderr):
            break
    return done


def stored_runs(directory: Path) -> tuple[StoredRun, ...]:
    there = (directory / "store/catalog.sqlite").exists()
    return open_store(directory / "store", create=False).runs() if there else ()


def valid_runs(runs: tuple[StoredRun, ...]) -> Runs:
    kept = [run.summary for run in runs if not run.summary.failure]
    return Counter((run.variant, run.mode, run.round) for run in kept)


def check_captures(store: Store, runs: tuple[StoredRun, ...], is_busy: bool) -> None:
    """Each is whole and of a whole program; ``is_busy``: it uses CPU time that perf must have seen."""
    for run in runs:
        capture = store.load(run)
        assert [metric.value for metric in capture.info.outcome.metrics if metric.name == "took"] == [TOOK_NS]
        if run.summary.mode is RunMode.PROFILED:
            assert capture.info.perf.perf_command
            assert len(capture.samples) or not is_busy


@pytest.mark.perf
@pytest.mark.beside
@pytest.mark.parametrize(("name", "trial"), TRIALS)
def test_killed_experiments_lose_and_double_nothing(tmp_path: Path, name: str, trial: int) -> None:
    kind, generator = KINDS[name], random.Random(f"{name} {trial}")
    kind.write(tmp_path)
    before_all = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    killed_at_random(tmp_path, kind, generator)
    if generator.random() < 0.5:  # else at once, while something may still be ending
        await_quiet(tmp_path)
    before = stored_runs(tmp_path)
    if valid_runs(before) != kind.runs:
        done = taken_up(tmp_path)
        assert done.returncode == 0, done.stderr
    store, after = open_store(tmp_path / "store", create=False), stored_runs(tmp_path)
    assert valid_runs(after) == kind.runs
    assert {run.key for run in before} <= {run.key for run in after}
    assert len({run.key.session for run in after}) == 1
    assert sorted(run.summary.position for run in after) == list(range(len(after)))
    check_captures(store, after, is_busy=name == "profiled")
    captures = list((tmp_path / "store/captures").glob("*/*.capture"))
    assert len(captures) in (len(after), len(after) + 1), "at most the capture that was being filed is left over"
    await_quiet(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before_all, "sources as they were"
    assert list((tmp_path / "store/tmp").iterdir()) == []
    if name == "service":
        socket.create_server(("127.0.0.1", int((tmp_path / "port").read_text()))).close()
