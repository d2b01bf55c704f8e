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


def _system(turns: int, compilations: int, rounds: int, seconds: int) -> Callable[[Path], list[str]]:
    """What a whole system does, on the first two processors: ``turns`` times five short processes, then ``compilations`` runs
    of the compiler (three processes each), two at a time; ``rounds`` of the program of deep stacks; and a dd that takes what
    time the others leave until ``seconds`` are over.

    The work fixes how many processes there are, and the time how many samples, on every machine that is done with the work in
    that time.
    """
    turn = (
        "/bin/true; ls -l /usr/bin; find /usr/lib/gcc -name '*.h'; dd if=/dev/zero of=/dev/null bs=64k count=100 status=none;"
        " sort /etc/services"
    )
    compiler = shutil.which("g++") or "g++"

    def command(folder: Path) -> list[str]:
        deep = " ".join(_deep(rounds, _FRAME_POINTERS)(folder))
        fill = f"timeout {seconds} nice -n 19 dd if=/dev/zero of=/dev/null bs=64k status=none"
        lane = (
            f"for i in $(seq {turns // 2}); do {turn}; done > /dev/null;"
            f" for i in $(seq {compilations // 2}); do {compiler} -O2 -g -c {SOURCE} -o {folder}/compiled-$BASHPID.o; done"
        )
        return ["taskset", "-c", _PROCESSORS, "bash", "-c", f"{fill} & {fill} & {deep} & ({lane}) & ({lane}); wait"]

    return command


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
_PROCESSORS = "0,1"
_ALL = ["-a", "-C", _PROCESSORS]

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
    Recorded(
        "all-fp", "-a, frame pointers, 3000 processes: ls, find, dd, sort, compilers, beside them a deep one",
        [*_ALL, "-F", "5000", "-g"], _system(600, 40, 800, 15), report_ratio=1.2,
    ),
    Recorded(
        "all-dwarf", "-a, stack dumps, 500 processes: ls, find, dd, sort, compilers, beside them a deep one",
        [*_ALL, "-F", "2000", *_SMALL_DUMPS], _system(80, 24, 300, 8), report_ratio=1.2,
    ),
    Recorded("compile", "stack dumps of compilers", ["-F", "2500", *_SMALL_DUMPS], _compilations(16), report_ratio=1.2),
)  # fmt: skip
