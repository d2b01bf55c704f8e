"""Whole experiments with programs that burn a stated CPU time and write down their own timers: what is kept and what is found.

The programs' own log is what everything is compared with; slotscope knows nothing of it.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from profiler.model.run import CaptureInfo
from profiler.store.store import open_store

# Burns MS, or with --same 12 ms, of CPU time by its own timer, which it prints and appends to the log.
BURNER = r"""
#include <stdio.h>
#include <string.h>
#include <time.h>
static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}
int main(int argc, char **argv) {
    const int is_same = argc > 1 && !strcmp(argv[1], "--same");
    const long long start = now(), end = start + 1000000LL * (is_same ? 12 : MS);
    while (now() < end);
    const long long burned = now() - start;
    printf("burned %lld ns\n", burned);
    FILE *log = fopen("log", "a");
    fprintf(log, "%d %d %lld\n", MS, is_same, burned);
    return fclose(log);
}
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "burner.c").write_text(BURNER)
    return tmp_path


def compile_burner(directory: Path, name: str, milliseconds: int) -> None:
    command = ["gcc", "-O1", f"-DMS={milliseconds}", "-o", name, "burner.c"]
    subprocess.run(command, cwd=directory, check=True)


def slotscope(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "profiler.cli.main", "--store", "store", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=directory, env=environment)


def carried_out(directory: Path, plan: str) -> dict[str, Any]:
    """The plan run, and what `show` says of it."""
    (directory / "plan.toml").write_text(plan)
    done = slotscope(directory, "experiment", "run", "plan.toml")
    assert done.returncode == 0, done.stderr
    shown = slotscope(directory, "experiment", "show", "--format", "json")
    assert shown.returncode == 0, shown.stderr
    return dict(json.loads(shown.stdout))


def stored(directory: Path) -> list[CaptureInfo]:
    """In the order of execution."""
    store = open_store(directory / "store", create=False)
    return sorted((store.load(run).info for run in store.runs()), key=lambda info: info.identity.position)


@dataclass(frozen=True)
class Burned:
    """A line of the programs' own log."""

    milliseconds: int
    is_same: bool
    burned_ns: float


def logged(directory: Path) -> list[Burned]:
    lines = [line.split() for line in (directory / "log").read_text().splitlines()]
    return [Burned(int(first), second == "1", float(third)) for first, second, third in lines]


LADDER = """
[experiment]
name = "ladder"
runs = 4
warmup = 1
seed = 3
profile = "none"
primary = "burned"
aa = true
retries = 0
command = ["{binary}"]
[[variant]]
name = "base"
binary = "./base"
[[variant]]
name = "first"
binary = "./first"
note = "a little"
[[variant]]
name = "second"
binary = "./second"
[[condition]]
name = "on"
[[condition]]
name = "off"
args = ["--same"]
control = true
[[metric]]
name = "burned"
regex = 'burned (\\d+ ns)'
"""
BURNS_MS = {"base": 20, "base-again": 20, "first": 18, "second": 10}


def metric(candidate: dict[str, Any], name: str) -> dict[str, Any]:
    return dict(next(found for found in candidate["metrics"] if found["name"] == name))


def test_ladder_control_and_baseline_again(directory: Path) -> None:
    """Three builds of 20, 18 and 10 ms; with --same, the control, all of them take 12 ms."""
    for name in ("base", "first", "second"):
        compile_burner(directory, name, BURNS_MS[name])
    found = carried_out(directory, LADDER)

    runs, log = stored(directory), logged(directory)
    warmups = len(BURNS_MS) * 2
    assert len(log) == warmups + len(runs), "every run in the log is kept once, but for warm-up runs"
    for info, burned in zip(runs, log[warmups:], strict=True):
        assert (BURNS_MS[info.identity.variant], info.identity.condition == "off") == (burned.milliseconds, burned.is_same)
        (own,) = (found.value for found in info.outcome.metrics)
        assert own == burned.burned_ns
        # The kernel charges what the program saw, and its start; it counts both kinds of time apart, and to a microsecond.
        assert info.outcome.user_ns + info.outcome.system_ns >= burned.burned_ns - 2e6
    rounds = [Counter(info.identity.arm for info in runs if info.identity.round == number) for number in range(4)]
    arms = {f"{variant}@{condition}": 1 for variant in BURNS_MS for condition in ("on", "off")}
    assert rounds == [Counter(arms)] * 4
    assert [info.identity.round for info in runs] == sorted(info.identity.round for info in runs)

    def mean(variant: str, condition: str) -> float:
        of_arm = [info for info in runs if (info.identity.variant, info.identity.condition) == (variant, condition)]
        return statistics.fmean(info.outcome.metrics[0].value for info in of_arm)

    on, off = found["conditions"]
    assert (on["name"], off["name"]) == ("on", "off")
    verdicts = {}
    for condition in (on, off):
        for candidate in condition["candidates"]:
            name = candidate["name"].partition("@")[0]
            burned = metric(candidate, "burned")
            expected = mean(name, condition["name"]) - mean("base", condition["name"])
            assert burned["delta"] == pytest.approx(expected, abs=1)
            verdicts[name, condition["name"]] = burned["verdict"]
            if condition is off or name == "base-again":
                # The gain vanishes in the control, and there is none of a build over itself.
                assert max(map(abs, burned["delta_interval"])) < 0.01 * mean("base", condition["name"])
    assert verdicts["first", "on"] == verdicts["second", "on"] == "faster"

    controls = {control["candidate"].partition("@")[0]: control for control in found["controls"]}
    for name, control in controls.items():
        row = metric(control, "burned")
        gains = [mean(name, condition) - mean("base", condition) for condition in ("on", "off")]
        assert (row["change"], row["control_change"]) == pytest.approx(gains, abs=1)
        assert row["difference"] == pytest.approx(gains[0] - gains[1], abs=1)
    assert controls["second"]["control"] == "off"
    ladder = on["ladder"]
    assert [step["name"].partition("@")[0] for step in ladder["steps"]] == ["first", "second"]
    assert ladder["largest"].partition("@")[0] == "second"
    assert ladder["steps"][1]["to_previous"]["delta"] == pytest.approx(mean("second", "on") - mean("first", "on"), abs=1)

    def checked(limit: str) -> tuple[int, str]:
        """Exit code and what is said of the limit; a slow machine tells its progress, too."""
        done = slotscope(directory, "experiment", "show", "--fail-on", limit)
        return done.returncode, "\n".join(line for line in done.stderr.splitlines() if line.startswith("slotscope: "))

    assert checked("burned:5") == checked("metric:burned:5") == (0, "")
    code, told = checked("5")
    assert code == 2
    way_out = "(a time or metric can be named, such as burned:5): not checked"
    assert told.splitlines()[0] == f"slotscope: --fail-on total: base-again@on has no profile {way_out}"
    code, told = checked("burnd:5")
    assert code == 2
    assert "no row or metric 'burnd' in this comparison; nearest: burned" in told
    # The other way round: of what is better when it is more, these builds have lost 10 and 50 %.
    (directory / "plan.toml").write_text(LADDER.replace("ladder", "less") + 'direction = "higher"\n')
    assert slotscope(directory, "experiment", "run", "plan.toml").returncode == 0
    code, told = checked("burned:5")
    assert code == 3
    assert [line.partition(":")[2].partition(":")[0] for line in told.splitlines()] == [" first@on", " second@on"]
    assert "second@on: burned fell by at least 4" in told or "second@on: burned fell by at least 5" in told


# Its second run exits with 3, its third one starts a helper and hangs, each time once.
UNRELIABLE = """#!/bin/sh
echo x >>"$0.count"
count=$(wc -l <"$0.count")
if [ $count = $FAILS ]; then echo no room left; exit 3; fi
if [ $count = $HANGS ]; then sleep 60 & sleep 60; fi
echo took 7 ms
"""


def unreliable(directory: Path, name: str, fails: int = 0, hangs: int = 0) -> None:
    (directory / name).write_text(UNRELIABLE.replace("$FAILS", str(fails)).replace("$HANGS", str(hangs)))
    (directory / name).chmod(0o755)


def processes_in(directory: Path) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and Path(os.readlink(entry / "cwd")) == directory:
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found


PAIR = """
[experiment]
name = "pair"
runs = {runs}
seed = 5
profile = "none"
primary = "{primary}"
retries = {retries}
timeout = "{timeout}"
command = ["{{binary}}"]
[[variant]]
name = "a"
binary = "./a"
[[variant]]
name = "b"
binary = "./b"
[[metric]]
name = "took"
regex = 'took (\\d+ ms)'
"""


def test_runs_that_fail_or_hang_are_made_again_at_the_end_of_their_round(directory: Path) -> None:
    unreliable(directory, "a", fails=2)
    unreliable(directory, "b", hangs=3)
    # A busy machine may disturb a few more.
    found = carried_out(directory, PAIR.format(runs=3, retries=30, timeout="5 s", primary="took"))
    runs = stored(directory)
    of_arm = {name: [info for info in runs if info.identity.variant == name] for name in "ab"}
    assert (of_arm["a"][1].outcome.failure, of_arm["b"][2].outcome.failure) == ("exit code 3", "timed out after 5 s")
    assert of_arm["a"][1].outcome.output_tail == "no room left\n"
    other = [info.outcome.failure for info in runs if info not in (of_arm["a"][1], of_arm["b"][2])]
    assert all(failure == "" or failure.startswith("disturbed: ") for failure in other)
    valid = Counter((info.identity.variant, info.identity.round) for info in runs if not info.outcome.failure)
    assert valid == Counter({(name, number): 1 for name in "ab" for number in range(3)})
    for number in range(3):
        of_round = [info for info in runs if info.identity.round == number]
        assert {info.identity.variant for info in of_round[:2]} == {"a", "b"}, "made again when the others had had their turn"
        assert len(of_round) == 2 + sum(1 for info in of_round if info.outcome.failure)
    assert {name: len((directory / f"{name}.count").read_text().splitlines()) for name in "ab"} == {
        name: len(infos) for name, infos in of_arm.items()
    }
    assert [line for line in found["repeated"] if "exit code 3" in line]
    assert [line for line in found["repeated"] if "timed out after 5 s" in line]
    assert processes_in(directory) == []
    took = metric(found["conditions"][0]["candidates"][0], "took")
    assert took["values"] == {"baseline": [7e6] * 3, "candidate": [7e6] * 3}


def test_a_run_that_fails_for_good_is_left_out(directory: Path) -> None:
    """Without retries the round lacks a run: three rounds are left that have both."""
    unreliable(directory, "a", fails=2)
    unreliable(directory, "b")
    found = carried_out(directory, PAIR.format(runs=4, retries=0, timeout="20 s", primary="took"))
    runs = stored(directory)
    assert len(runs) == 8
    assert [(i.identity.variant, i.identity.round) for i in runs if i.outcome.failure] == [("a", 1)]
    (candidate,) = found["conditions"][0]["candidates"]
    assert metric(candidate, "took")["values"]["baseline"] == [7e6] * 3
    assert [line for line in found["left_out"] if "exit code 3" in line]


@contextlib.contextmanager
def busy() -> Iterator[None]:
    """Work of somebody else."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            yield
        finally:
            process.kill()


def test_disturbed_runs_are_made_again_within_the_budget(directory: Path) -> None:
    """Everything is disturbed: as many runs as there are retries are made again, and what is left counts and is warned of."""
    for name in "ab":
        (directory / name).write_text("#!/bin/sh\necho x >>count\nsleep 0.6\necho took 7 ms\n")
        (directory / name).chmod(0o755)
    with busy():
        found = carried_out(directory, PAIR.format(runs=3, retries=3, timeout="60 s", primary="took"))
    runs = stored(directory)
    assert len((directory / "count").read_text().splitlines()) == len(runs) == 6 + 3
    failed = [info for info in runs if info.outcome.failure]
    assert len(failed) == 3
    assert all(
        info.outcome.failure.startswith("disturbed: ") and "busy with other work" in info.outcome.failure for info in failed
    )
    valid = [info for info in runs if not info.outcome.failure]
    assert Counter((info.identity.variant, info.identity.round) for info in valid) == {
        (n, r): 1 for n in "ab" for r in range(3)
    }
    assert all("busy with other work" in info.outcome.disturbance for info in valid)
    codes = [warning["code"] for warning in found["conditions"][0]["warnings"]]
    assert codes.count("disturbed") == 2, "once for each arm"
