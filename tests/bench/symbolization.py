"""Speed and memory of symbolization against addr2line and llvm-symbolizer, on 60 MB and on 600 MB of debug information.

    python tests/bench/symbolization.py [--folder DIR] [--rounds N] [--units N] [--file PATH]... [--small-only]

Each tool answers for the same addresses, with inline frames and demangled names; output goes to /dev/null.  "cold" decodes,
"warm" reads what an earlier process kept by build ID.  Every run is a fresh process, so that the start of Python and numpy,
which is most of a warm run, counts; rounds are interleaved; printed are medians, the largest memory, and the ratio to the peer
named.  The last lines show how long the symbolizer alone took, which is what it adds to a report.  Inputs are built in the
folder and used again; --file adds one that is there already, such as a kernel with debug information.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

from many_units import ManyUnits
from timing import Contender, compare, environment, timed

PROGRAM = f"{sys.executable} {Path(__file__).with_name('symbolize_addresses.py')}"
ADDR2LINE, LLVM = "addr2line -i -f -C", "llvm-symbolizer -C"
HIT_UNITS = 60
COUNTS = (2_000, 20_000)
COLD_AT_LEAST = 1.0
# Of what a warm symbolizer adds to a report: the start of Python and numpy alone takes most of a small file's llvm-symbolizer.
WARM_AT_LEAST = 5.0
MEMORY_BELOW_MB = 300


def addresses_in_units(path: Path, count: int, units: int, folder: Path) -> Path:
    """A file with addresses of at most ``units`` units.  Chosen in a process of its own: what this one has in memory would
    count as that of the tools, which start as copies of it."""
    chosen = folder / f"{path.name}-{count}-{units}.addresses"
    if not chosen.exists():
        command = [sys.executable, str(Path(__file__).with_name("unit_addresses.py")), str(path), str(count), str(units)]
        text = subprocess.run(command, env=environment(folder), capture_output=True, text=True, check=True).stdout
        chosen.write_text(text)
    return chosen


def measure(path: Path, count: int, units: int, folder: Path, rounds: int) -> bool:
    """Prints one table and the symbolizer's own time; returns whether everything is kept that the project holds itself to."""
    addresses = addresses_in_units(path, count, units, folder)
    cache = folder / "symbols"
    ours = f"{PROGRAM} {path} {addresses}"
    cold_peer, warm_peer = f"{ADDR2LINE}, cold", f"{LLVM}, cold"
    commands = [Contender(cold_peer, f"{ADDR2LINE} -e {path} < {addresses}")] if shutil.which("addr2line") else []
    if shutil.which("llvm-symbolizer"):
        commands.append(Contender(warm_peer, f"{LLVM} -e {path} < {addresses}"))
    peers = {contender.name for contender in commands}
    if cold_peer in peers:
        commands.append(Contender("cold, to addr2line", ours, cold_peer, COLD_AT_LEAST, MEMORY_BELOW_MB))
    if warm_peer in peers:
        commands.append(Contender("cold, to llvm-symbolizer", ours, warm_peer))
        commands.append(Contender("warm, to llvm-symbolizer", f"{ours} --cache {cache}", warm_peer, 0, MEMORY_BELOW_MB))
    commands.append(Contender("import numpy, for comparison", f"{sys.executable} -c 'import numpy'"))
    title = f"{path.name}: {path.stat().st_size / 1e6:.0f} MB, {count:,} addresses in at most {units:,} units"
    kept = compare(title, commands, folder, rounds)
    alone = [
        statistics.median(own_seconds(f"{ours} {more}", folder) for _ in range(rounds)) for more in ("", f"--cache {cache}")
    ]
    print(f"the symbolizer alone: cold {alone[0] * 1e3:.0f} ms, warm {alone[1] * 1e3:.0f} ms", end="")
    if warm_peer in peers:
        peer_s = statistics.median(timed(f"{LLVM} -e {path} < {addresses}", folder).wall for _ in range(rounds))
        ratio = peer_s / alone[1]
        is_kept = ratio >= WARM_AT_LEAST
        kept &= is_kept
        print(f", {ratio:.1f}x {LLVM}   >= {WARM_AT_LEAST:g}x {'kept' if is_kept else 'MISSED'}", end="")
    print(flush=True)
    return kept


def own_seconds(command: str, folder: Path) -> float:
    done = subprocess.run(
        ["bash", "-c", f"{command} --seconds"], cwd=folder, env=environment(folder), capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("/tmp/slotscope-bench"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--units", type=int, default=HIT_UNITS, help="that the addresses are in at most (%(default)s)")
    parser.add_argument("--file", type=Path, action="append", default=[], help="measure this one too; may be repeated")
    parser.add_argument("--small-only", action="store_true", help="leave out the 600 MB file")
    arguments = parser.parse_args()
    folder: Path = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for peer in ("addr2line", "llvm-symbolizer"):
        if shutil.which(peer) is None:
            print(f"{peer}: not in PATH, so nothing is compared with it")
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    inputs = [ManyUnits("small", 32)] if arguments.small_only else [ManyUnits("small", 32), ManyUnits("large", 300)]
    paths = [*(each.make(folder) for each in inputs), *(path.resolve() for path in arguments.file)]
    kept = [measure(path, count, arguments.units, folder, arguments.rounds) for path in paths for count in COUNTS]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
