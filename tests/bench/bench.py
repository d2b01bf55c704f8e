"""Speed and memory against perf: records a frame-pointer and a DWARF capture, then runs both tools over them in turn.

    python tests/bench/bench.py [--folder DIR] [--rounds N] [--samples N] [--dwarf-samples N]

Every run is a fresh process, rounds are interleaved, peers write to /dev/null; printed are medians, the ratios to
`perf script --no-inline`, and the largest memory.  Captures are kept in the folder and used again.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCE = Path(__file__).with_name("deep.cpp")
FREQUENCY_HZ = 20_000
DWARF_FREQUENCY_HZ = 4_000
# Of the program, for a thousand samples at these rates, roughly, on a current core.
ROUNDS_PER_THOUSAND = 7.7
DWARF_ROUNDS_PER_THOUSAND = 55


@dataclass(frozen=True)
class Timing:
    """Of one process: wall and CPU seconds, and its largest resident set."""

    wall: float
    cpu: float
    memory_mb: float


@dataclass(frozen=True)
class Contender:
    """A command to be timed; ``name`` as printed."""

    name: str
    command: str


def environment(folder: Path) -> dict[str, str]:
    """Compiled modules and symbol caches are kept beside the captures: what is timed is the tool as installed."""
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return own | {
        "PYTHONPATH": str(ROOT),
        "PYTHONPYCACHEPREFIX": str(folder / "pycache"),
        "XDG_CACHE_HOME": str(folder / "cache"),
    }


def timed(command: str, folder: Path) -> Timing:
    """One run through the shell (pipes are part of what is compared), measured on all of its processes."""
    started = time.perf_counter()
    with subprocess.Popen(
        ["bash", "-o", "pipefail", "-c", command], cwd=folder, env=environment(folder), stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        message = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command}\n{message.decode(errors='replace')[-2000:]}")
    return Timing(time.perf_counter() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def captures(folder: Path, samples: int, dwarf_samples: int) -> dict[str, Path]:
    """Paths of the recordings, made where they are missing."""
    recordings = {
        "fp": (["-fno-omit-frame-pointer"], ["-F", str(FREQUENCY_HZ), "-g"], samples * ROUNDS_PER_THOUSAND / 1000),
        "dwarf": (
            [],
            ["-F", str(DWARF_FREQUENCY_HZ), "--call-graph", "dwarf,16384"],
            dwarf_samples * DWARF_ROUNDS_PER_THOUSAND / 1000,
        ),
    }
    paths = {}
    for name, (flags, options, rounds) in recordings.items():
        paths[name] = folder / f"{name}.data"
        if paths[name].exists():
            continue
        program = folder / f"deep-{name}"
        subprocess.run(["g++", "-O2", "-g", "-pthread", *flags, str(SOURCE), "-o", str(program)], check=True)
        command = ["perf", "record", "-N", "-q", "-m", "8M", "-e", "cpu-clock", *options, "-o", str(paths[name])]
        subprocess.run([*command, "--", str(program), str(int(rounds))], check=True)
    return paths


def contenders(path: Path, folder: Path) -> list[Contender]:
    """The peer comes first; ratios are to it."""
    python = f"{sys.executable} -m profiler.cli.main"
    found = [
        Contender("perf script --no-inline", f"perf script -i {path} --no-inline"),
        Contender("slotscope report", f"{python} report {path}"),
        Contender("slotscope export .folded", f"{python} export {path} -o {folder / 'out.folded'}"),
    ]
    collapse = shutil.which("stackcollapse-perf.pl")
    if collapse:
        found.append(Contender("perf script | stackcollapse-perf.pl", f"perf script -i {path} --no-inline | {collapse}"))
    return found


def sample_count(path: Path, folder: Path) -> int:
    done = subprocess.run(
        ["perf", "report", "-i", str(path), "--stats", "--stdio"], cwd=folder, capture_output=True, text=True, check=True
    )
    # The totals come first, then the same for each event.
    return next(int(line.split()[2]) for line in done.stdout.splitlines() if line.split()[:2] == ["SAMPLE", "events:"])


def compare(title: str, commands: Sequence[Contender], folder: Path, rounds: int) -> None:
    for contender in commands:
        timed(contender.command, folder)  # fills caches, the peer's page cache among them
    timings: dict[str, list[Timing]] = {contender.name: [] for contender in commands}
    for _ in range(rounds):
        for contender in commands:
            timings[contender.name].append(timed(contender.command, folder))
    print(f"\n{title}, median of {rounds} interleaved rounds")
    print(f"{'':38}{'wall':>9}{'cpu':>9}{'ratio':>8}{'memory':>10}")
    peer = statistics.median(timing.wall for timing in timings[commands[0].name])
    for name, runs in timings.items():
        wall = statistics.median(run.wall for run in runs)
        cpu = statistics.median(run.cpu for run in runs)
        print(f"{name:38}{wall:8.3f}s{cpu:8.3f}s{peer / wall:7.2f}x{max(run.memory_mb for run in runs):7.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("/tmp/slotscope-bench"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--samples", type=int, default=220_000)
    parser.add_argument("--dwarf-samples", type=int, default=33_000)
    arguments = parser.parse_args()
    folder: Path = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    version = subprocess.run(["perf", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    print(f"{version}, Python {sys.version.split()[0]}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    if shutil.which("stackcollapse-perf.pl") is None:
        print("stackcollapse-perf.pl is not in PATH: the folded output is compared with perf script alone")
    python = f"{sys.executable} -m profiler.cli.main"
    for name, path in captures(folder, arguments.samples, arguments.dwarf_samples).items():
        size_mb = path.stat().st_size / 1e6
        title = f"{name}: {sample_count(path, folder):,} samples, {size_mb:.0f} MB"
        compare(title, contenders(path, folder), folder, arguments.rounds)
    tiny = folder / "tiny.data"
    if not tiny.exists():
        subprocess.run(["perf", "record", "-N", "-q", "-e", "cpu-clock", "-g", "-o", str(tiny), "--", "true"], check=True)
    start_up = [
        Contender("perf script of a tiny file", f"perf script -i {tiny} --no-inline"),
        Contender("slotscope --help", f"{python} --help"),
        Contender("slotscope report of a tiny file", f"{python} report {tiny}"),
    ]
    compare("start-up", start_up, folder, arguments.rounds)


if __name__ == "__main__":
    main()
