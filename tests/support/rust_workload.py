"""Builds the Rust workload (``tests/workloads/skip_slots_rs``) and reads its timers.

Finished programs are kept (``support.kept_builds``), under a hash of the sources, the flags and the toolchain;
cargo's own intermediate results are in a directory next to them, which all variants share.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from support.kept_builds import CACHE, kept, key_of
from support.workload import Timers

SOURCES = Path(__file__).resolve().parent.parent / "workloads" / "skip_slots_rs"
TARGET = CACHE / "skip_slots_rs"
PROGRAM = "skip_slots"

# Seconds of silence and attempts after which a registry counts as unreachable.
NETWORK_LIMITS = {"CARGO_HTTP_TIMEOUT": "30", "CARGO_NET_RETRY": "2"}

_RUN_LINE = re.compile(r"Run \d+: ([0-9.]+)(ns|µs|ms|s)$")
_MILLISECONDS = {"ns": 1e-6, "µs": 1e-3, "ms": 1.0, "s": 1e3}


class CratesUnavailable(Exception):
    """Cargo cannot get the crates that the program is made of; the message is cargo's."""


@dataclass(frozen=True, slots=True)
class RustVariant:
    """One way to build the program.  ``profile``: release, thin, fat (link-time optimization) or line-tables."""

    profile: str = "release"
    jemalloc: bool = False
    lock_free: bool = False
    btree_updates: bool = False
    frame_pointers: bool = False

    @property
    def features(self) -> tuple[str, ...]:
        named = {"jemalloc": self.jemalloc, "lock-free": self.lock_free, "btree-updates": self.btree_updates}
        return tuple(name for name, chosen in named.items() if chosen)

    @property
    def rustflags(self) -> str:
        return "-C force-frame-pointers=yes" if self.frame_pointers else ""

    @property
    def label(self) -> str:
        """A name for test IDs and arms, e.g. "thin-jemalloc"."""
        return "-".join([self.profile, *self.features, *(["fp"] if self.frame_pointers else [])])


def build(variant: RustVariant) -> Path:
    """The program built as asked; two processes may ask for the same build at the same time.

    Raises ``CratesUnavailable`` where the crates are neither here nor to be had, and ``AssertionError`` with the compiler's
    messages where the sources cannot be built.
    """

    def fill(directory: Path) -> None:
        _fetch_crates()
        shutil.copy2(_compile(variant), directory / PROGRAM)

    return kept(_build_key(variant), PROGRAM, fill)


def _build_key(variant: RustVariant) -> str:
    sources = [part for path in _source_files() for part in (str(path.relative_to(SOURCES)), path.read_bytes())]
    return key_of([*sources, variant.profile, *variant.features, variant.rustflags, _toolchain()])


def _source_files() -> Iterator[Path]:
    """What the program is made of.  A target directory that somebody left here is none of it."""
    for path in sorted(SOURCES.rglob("*")):
        if path.suffix in (".rs", ".toml", ".lock") and "target" not in path.relative_to(SOURCES).parts:
            yield path


@cache
def _toolchain() -> str:
    compiler = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True, cwd=SOURCES).stdout
    cargo = subprocess.run(["cargo", "-V"], check=True, capture_output=True, text=True, cwd=SOURCES).stdout
    return compiler + cargo


def _host() -> str:
    return next(line.removeprefix("host: ") for line in _toolchain().splitlines() if line.startswith("host: "))


@cache
def _fetch_crates() -> None:
    done = _cargo(["fetch", "--locked", "--target", _host()], {})
    if done.returncode != 0:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        raise CratesUnavailable(" / ".join(lines[-4:]) or f"cargo fetch ended with {done.returncode}")


def _compile(variant: RustVariant) -> Path:
    command = ["build", "--locked", "--offline", "--package", PROGRAM, "--profile", variant.profile]
    if variant.features:
        command += ["--features", ",".join(variant.features)]
    done = _cargo([*command, "--message-format", "json-render-diagnostics"], {"RUSTFLAGS": variant.rustflags})
    assert done.returncode == 0, f"cargo {' '.join(command)} failed:\n{done.stderr}"
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    executables = [each["executable"] for each in messages if each.get("executable")]
    return Path(executables[-1])


def _cargo(arguments: Sequence[str], variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    environment = os.environ | NETWORK_LIMITS | variables | {"CARGO_TARGET_DIR": str(TARGET), "CARGO_TERM_COLOR": "never"}
    command = ["cargo", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=SOURCES, env=environment, stdin=subprocess.DEVNULL, check=False
    )


def parse_timers(output: str) -> Timers:
    """Reads the ``Run 1: 812.3ms`` lines, which become ``epoch_ms``, and the JSON lines of the program's output."""
    category_ns: dict[str, int] = {}
    run_ms = []
    total: dict[str, object] = {}
    for line in output.splitlines():
        if run := _RUN_LINE.match(line):
            run_ms.append(float(run[1]) * _MILLISECONDS[run[2]])
            continue
        record = json.loads(line)
        if "category" in record:
            category_ns[record["category"]] = record["cpu_ns"]
        else:
            total = record["total"]
    return Timers(
        category_ns=category_ns,
        total_ns=int(str(total["cpu_ns"])),
        process_cpu_ns=int(str(total["process_cpu_ns"])),
        checksum=str(total["checksum"]),
        epoch_ms=run_ms,
    )


def run(program: Path, *arguments: str) -> Timers:
    """Runs the program without a profiler."""
    done = subprocess.run([program, *arguments], check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return parse_timers(done.stdout)
