"""`slotscope demo`: builds two variants of the bundled workload, records and compares them, and writes the report.

Where recording is not possible it says why, and analyses small recordings that come with the sources.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from profiler.cli.context import CliContext
from profiler.errors import CaptureError, SlotscopeError
from profiler.model.quick_dataclass import dataclass

NAME = "demo"
HELP = "Build, record and compare two variants of an example program"

_CHECKOUT = Path(__file__).resolve().parent.parent.parent
_WORKLOAD = Path("tests", "workloads", "epoch_cpp")
_SHIPPED = Path("tests", "fixtures", "epoch_demo")
_CPU_FACTS = Path("/proc/cpuinfo")
_PHASE = "^phase::"
_METRIC = "epoch=regex:^epoch: (.+)$"
_RUNS, _QUICK_RUNS = 8, 4
_EPOCHS, _QUICK_EPOCHS = 40, 20


@dataclass(frozen=True, slots=True)
class DemoArm:
    """One build of the workload: its name, what it is in words, and the compiler's flags."""

    name: str
    words: str
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the reading commands look at: a store, selectors of both arms, and options.  ``what``: in words."""

    what: str
    store: Path
    baseline: str
    candidate: str
    options: tuple[str, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--runs", type=_run_count, metavar="N", help=f"runs per variant (default: {_RUNS}; --quick: {_QUICK_RUNS})"
    )
    parser.add_argument(
        "--out", default="demo-out", metavar="DIR", help="where programs, runs and reports go (default: demo-out)"
    )
    parser.add_argument("--quick", action="store_true", help="fewer and shorter runs")


def run(arguments: argparse.Namespace, context: CliContext) -> int:
    started = time.monotonic()
    if not (_CHECKOUT / _WORKLOAD / "build.sh").is_file():
        raise SlotscopeError(
            "the demo builds a program whose sources are in the repository: clone it and run `make demo` there"
        )
    out = Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    obstacle = recording_obstacle(out)
    if obstacle:
        _say(context, f"Recording is not possible: {obstacle}")
        evidence = _shipped_evidence()
    else:
        evidence = _recorded_evidence(arguments, out, replace(context, store_directory=out / "store"))
    _show(evidence, out, replace(context, store_directory=evidence.store))
    _say(context, f"Took {time.monotonic() - started:.0f} s.")
    return 0


def recording_obstacle(scratch: Path) -> str:
    """Why this machine cannot build and record the workload, with the way out; empty when it can."""
    from collectors.processes.launcher import LaunchRequest, launch_recorded
    from collectors.profilers.perf_record import start_recording
    from profiler.model.run import PerfSettings

    if shutil.which("g++") is None:
        return "g++ is not installed: `apt-get install g++`, `dnf install gcc-c++` or `pacman -S gcc`"
    recording = scratch / "probe.data"
    settings = PerfSettings(event="cpu-clock", frequency_hz=99)
    try:
        request = LaunchRequest(("true",), scratch / "probe.txt")
        _, recorder = launch_recorded(request, lambda pid: start_recording(settings, pid, recording))
        return recorder.finish().failure
    except CaptureError as error:
        return str(error)
    finally:
        recording.unlink(missing_ok=True)
        (scratch / "probe.txt").unlink(missing_ok=True)


def demo_arms(cpu_facts: str) -> tuple[DemoArm, DemoArm]:
    """Baseline and candidate; ``cpu_facts`` is the text of /proc/cpuinfo."""
    baseline = DemoArm("portable", "g++ -O2, SHA-256 in plain C++", ("-O2", "-g", "-DPORTABLE_SHA256"))
    if "sha_ni" in cpu_facts.split():
        return baseline, DemoArm("sha-ni", "the same with the processor's SHA-256 instructions", ("-O2", "-g"))
    flags = ("-O3", "-flto=auto", "-g", "-DPORTABLE_SHA256")
    return baseline, DemoArm("lto", "the same sources with -O3 and link-time optimization", flags)


def _recorded_evidence(arguments: argparse.Namespace, out: Path, context: CliContext) -> Evidence:
    arms = demo_arms(_CPU_FACTS.read_text() if _CPU_FACTS.exists() else "")
    _say(context, "Epoch processing as in an Ethereum consensus client, built twice:")
    for arm in arms:
        _say(context, f"  {arm.name:<9} {arm.words}")
    programs = out / "programs"
    programs.mkdir(exist_ok=True)
    for arm in arms:
        _build(arm, programs / arm.name)
    runs = arguments.runs or (_QUICK_RUNS if arguments.quick else _RUNS)
    epochs = _QUICK_EPOCHS if arguments.quick else _EPOCHS
    variants = [f"--variant={arm.name}={programs / arm.name}" for arm in arms]
    command = ["record", *variants, "--runs", str(runs), "--metric", _METRIC, "--pick", "mean", "--phase", _PHASE]
    _command([*command, "--", "{binary}", "--epochs", str(epochs)], context)
    return Evidence(f"{runs} runs of each build", context.store_directory, arms[0].name, arms[1].name, ("--phase", _PHASE))


def _shipped_evidence() -> Evidence:
    directory = Path(os.path.relpath(_CHECKOUT / _SHIPPED))
    options = ("--phase", _PHASE, "--debug-dir", str(directory))
    return Evidence(f"the recordings in {directory}", directory / "store", "portable", "sha-ni", options)


def _build(arm: DemoArm, program: Path) -> None:
    command = [str(_CHECKOUT / _WORKLOAD / "build.sh"), str(program.absolute()), *arm.flags]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        reason = next((line for line in done.stderr.splitlines() if "error" in line), "no message")
        raise SlotscopeError(f"the workload does not build ({reason.strip()}): {shlex.join(command)}")


def _show(evidence: Evidence, out: Path, context: CliContext) -> None:
    """Tables to the terminal, the report and the flame graphs to files."""
    _say(context, f"\nWhere the time goes, from {evidence.what}:")
    for selector in (evidence.baseline, evidence.candidate):
        _command(["report", selector, *evidence.options, "--limit", "12"], context)
    _say(context, "\nWhat the change bought:")
    pair = [evidence.baseline, evidence.candidate, *evidence.options]
    _command(["compare", *pair], context)
    report = out / "report.md"
    with report.open("w", encoding="utf-8") as stream:
        _command(["compare", *pair, "--format", "markdown"], context, replace(context, stdout=stream))
    flames = out / "ab.speedscope.json"
    _command(["export", *pair, "-o", str(flames)], context)
    _say(context, f"\nWrote {report} (text for a pull request) and {flames} (for https://www.speedscope.app).")


def _command(arguments: Sequence[str], context: CliContext, target: CliContext | None = None) -> None:
    """Runs one of slotscope's commands as if typed, after printing it."""
    from profiler.cli.main import command_parser, load_command

    shown = f"slotscope --store {context.store_directory} {shlex.join(arguments)}"
    _say(context, f"\n$ {shown}" + (f" >{target.stdout.name}" if target else ""))
    parsed = command_parser(arguments[0]).parse_args(arguments[1:])
    code = load_command(arguments[0]).run(parsed, target or context)
    if code:
        raise SlotscopeError(f"this step ended with exit code {code}: {shown}")


def _say(context: CliContext, line: str) -> None:
    print(line, file=context.stdout, flush=True)


def _run_count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of runs")
    return int(text)
