"""The recordings that are measured, made with perf where they are missing."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_name("deep.cpp")


@dataclass(frozen=True)
class Recorded:
    """One recording.  ``report_ratio``: how many times faster than `perf script --no-inline` a report of it has to be;
    ``folded_ratio``: than `perf script | stackcollapse-perf.pl` the folded export has to be (0: nothing is promised).
    ``memory_below_mb``: what a report may use, unique stacks included, 0 where nothing is promised.
    ``has_collapse``: is the Perl peer timed at all; on the largest recordings it takes minutes."""

    name: str
    describes: str
    record: list[str]
    workload: Callable[[Path], list[str]]
    report_ratio: float = 0
    folded_ratio: float = 0
    memory_below_mb: float = 0
    has_collapse: bool = True

    def path(self, folder: Path) -> Path:
        return folder / f"{self.name}.data"

    def make(self, folder: Path) -> Path:
        """The recording's path; records it unless it is there."""
        path = self.path(folder)
        if not path.exists():
            unfinished = path.with_suffix(".unfinished")
            command = ["perf", "record", "-N", "-q", "-m", "8M", "-e", "cpu-clock", *self.record, "-o", str(unfinished)]
            subprocess.run([*command, "--", *self.workload(folder)], check=True, cwd=folder, stdout=subprocess.DEVNULL)
            unfinished.rename(path)
        return path


def _deep(rounds: int, *flags: str) -> Callable[[Path], list[str]]:
    """The program of deep stacks; ``rounds`` of it give the number of samples that is wanted on a current core, roughly."""

    def command(folder: Path) -> list[str]:
        program = folder / ("deep" + "".join(flags))
        if not program.exists():
            subprocess.run(["g++", "-O2", "-g", "-pthread", *flags, str(SOURCE), "-o", str(program)], check=True)
        return [str(program), str(rounds)]

    return command


def _short_processes(count: int) -> Callable[[Path], list[str]]:
    """A shell loop: ``count`` turns of four short processes each, two turns at a time."""
    turn = "true; ls -l /usr/bin > /dev/null; sort /etc/services > /dev/null; grep -c e /etc/services > /dev/null"
    loop = f"for i in $(seq {count // 2}); do /bin/{turn}; done"
    return lambda folder: ["bash", "-c", f"({loop}) & ({loop}); wait"]


def _compilations(count: int) -> Callable[[Path], list[str]]:
    """``count`` runs of the compiler, two at a time, each of which starts several programs of tens of megabytes."""
    compiler = shutil.which("g++") or "g++"
    return lambda folder: [
        "bash", "-c",
        f"seq {count} | xargs -P 2 -I NUMBER {compiler} -O2 -g -c {SOURCE} -o {folder}/compiled-NUMBER.o",
    ]  # fmt: skip


_FRAME_POINTERS = "-fno-omit-frame-pointer"
_DWARF = ["--call-graph", "dwarf,16384"]
_SMALL_DUMPS = ["--call-graph", "dwarf,8192"]

CAPTURES = (
    Recorded(
        "fp", "frame pointers", ["-F", "20000", "-g"], _deep(1_650, _FRAME_POINTERS), report_ratio=2.5, folded_ratio=5.0
    ),
    Recorded(
        "fp-1m", "frame pointers", ["-F", "20000", "-g"], _deep(8_200, _FRAME_POINTERS), report_ratio=4.0, has_collapse=False
    ),
    Recorded("dwarf", "stack dumps", ["-F", "4000", *_DWARF], _deep(1_800), report_ratio=2.0),
    Recorded(
        "dwarf-2g", "stack dumps", ["-F", "4000", *_DWARF], _deep(7_000), report_ratio=2.0, memory_below_mb=256,
        has_collapse=False,
    ),
    Recorded("all-fp", "-a, frame pointers", ["-a", "-F", "5000", "-g"], _short_processes(1_500), report_ratio=1.2),
    Recorded("all-dwarf", "-a, stack dumps", ["-a", "-F", "2000", *_SMALL_DUMPS], _short_processes(1_000), report_ratio=1.2),
    Recorded("compile", "stack dumps of compilers", ["-F", "2500", *_SMALL_DUMPS], _compilations(16), report_ratio=1.2),
)  # fmt: skip
