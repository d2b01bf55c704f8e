"""Builds and runs the epoch workload (``tests/workloads/epoch_cpp``) and reads its timers.

Builds are kept (``support.kept_builds``), under a hash of the sources, the flags and the compiler's version.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from support.kept_builds import kept, key_of

SOURCES = Path(__file__).resolve().parent.parent / "workloads" / "epoch_cpp"
COMPILER = "g++"


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to build the program.  ``slower_hash``: percent of SHA-256 blocks that are compressed twice.  ``debug``: a
    ``-g`` option, or "" for none."""

    optimization: str = "-O2"
    lto: bool = False
    frame_pointers: bool = False
    portable_sha256: bool = False
    slower_hash: int = 0
    debug: str = "-g"

    @property
    def flags(self) -> tuple[str, ...]:
        flags = [self.optimization, "-fno-omit-frame-pointer" if self.frame_pointers else "-fomit-frame-pointer"]
        if self.lto:
            flags.append("-flto=auto")
        if self.debug:
            flags.append(self.debug)
        if self.portable_sha256:
            flags.append("-DPORTABLE_SHA256")
        if self.slower_hash:
            flags.append(f"-DSLOWER_HASH={self.slower_hash}")
        return tuple(flags)

    @property
    def label(self) -> str:
        """A name for test IDs and arms, e.g. "O2-lto-fp"."""
        parts = [self.optimization.removeprefix("-"), "lto" if self.lto else "", "fp" if self.frame_pointers else ""]
        parts += ["portable" if self.portable_sha256 else "", f"slower{self.slower_hash}" if self.slower_hash else ""]
        return "-".join(part for part in parts if part)


def build(variant: Variant) -> Path:
    """The program built as asked; two processes may ask for the same build at the same time."""

    def fill(directory: Path) -> None:
        subprocess.run([SOURCES / "build.sh", directory / "epoch", *variant.flags], check=True, stdin=subprocess.DEVNULL)

    return kept(_build_key(variant), "epoch", fill)


def _build_key(variant: Variant) -> str:
    sources = [part for path in sorted(SOURCES.iterdir()) for part in (path.name, path.read_bytes())]
    return key_of([*sources, *variant.flags, _compiler_version()])


@cache
def _compiler_version() -> str:
    return subprocess.run([COMPILER, "--version"], check=True, capture_output=True, text=True).stdout


@dataclass(frozen=True, slots=True)
class Timers:
    """What one run measured of itself, in ns of CPU time.  ``category_ns``: the timed phases by category; they sum to
    ``total_ns``.  ``process_cpu_ns`` includes set-up.  ``checksum`` depends on the work done alone, not on the build."""

    category_ns: Mapping[str, int]
    total_ns: int
    process_cpu_ns: int
    checksum: str
    epoch_ms: Sequence[float]


def parse_timers(output: str) -> Timers:
    """Reads the JSON lines and the ``epoch: 12.3ms`` lines of the program's output."""
    category_ns: dict[str, int] = {}
    epoch_ms = []
    total: dict[str, object] = {}
    for line in output.splitlines():
        if line.startswith("epoch: "):
            epoch_ms.append(float(line.removeprefix("epoch: ").removesuffix("ms")))
            continue
        record = json.loads(line)
        if record.get("phase") == "total":
            total = record
        elif "phase" in record:
            category_ns[record["category"]] = record["cpu_ns"]
    return Timers(
        category_ns=category_ns,
        total_ns=int(str(total["cpu_ns"])),
        process_cpu_ns=int(str(total["process_cpu_ns"])),
        checksum=str(total["checksum"]),
        epoch_ms=epoch_ms,
    )


def run(program: Path, *arguments: str) -> Timers:
    """Runs the program without a profiler."""
    done = subprocess.run([program, *arguments], check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return parse_timers(done.stdout)
