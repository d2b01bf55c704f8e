"""Speed and memory against perf: records what it needs, then runs both tools over each recording in turn.

    python tests/bench/bench.py [--folder DIR] [--rounds N] [--only NAME]... [--stackcollapse FILE]

Every run is a fresh process, rounds are interleaved, output goes to /dev/null; printed are medians, the largest memory, and
ratios to the peer: of a report, `perf script --no-inline`; of the folded export, the same through `stackcollapse-perf.pl`.
The exit status is 1 when a ratio or a limit is missed that the project holds itself to.  Recordings are kept in the folder
and used again.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from captures import CAPTURES, Recorded
from timing import Contender, compare

SLOTSCOPE = f"{sys.executable} -m profiler.cli.main"
_PEER = "perf script --no-inline"
_COLLAPSE = "perf script | stackcollapse-perf.pl"
_START_UP = "start-up"


def contenders(capture: Recorded, folder: Path, collapse: str | None) -> list[Contender]:
    """Peers come before what is compared with them."""
    path = capture.path(folder)
    found = [
        Contender(_PEER, f"perf script -i {path} --no-inline"),
        Contender("slotscope report", f"{SLOTSCOPE} report {path}", _PEER, capture.report_ratio, capture.memory_below_mb),
    ]
    folded = f"{SLOTSCOPE} export {path} -o {folder / 'out.folded'}"
    if collapse and capture.has_collapse:
        found.append(Contender(_COLLAPSE, f"perf script -i {path} --no-inline | {collapse}"))
        found.append(Contender("slotscope export .folded", folded, _COLLAPSE, capture.folded_ratio))
    else:
        found.append(Contender("slotscope export .folded", folded))
    return found


def sample_count(path: Path, folder: Path) -> int:
    done = subprocess.run(
        ["perf", "report", "-i", str(path), "--stats", "--stdio"], cwd=folder, capture_output=True, text=True, check=True
    )
    # The totals come first, then the same for each event.
    return next(int(line.split()[2]) for line in done.stdout.splitlines() if line.split()[:2] == ["SAMPLE", "events:"])


def measure(capture: Recorded, folder: Path, collapse: str | None, rounds: int) -> bool:
    """Prints one table; returns whether everything is kept that the project holds itself to."""
    path = capture.make(folder)
    title = f"{capture.name} ({capture.describes}): {sample_count(path, folder):,} samples, {path.stat().st_size / 1e6:.0f} MB"
    return compare(title, contenders(capture, folder, collapse), folder, rounds)


def measure_start_up(folder: Path, rounds: int) -> bool:
    tiny = folder / "tiny.data"
    if not tiny.exists():
        subprocess.run(["perf", "record", "-N", "-q", "-e", "cpu-clock", "-g", "-o", str(tiny), "--", "true"], check=True)
    commands = [
        Contender("perf script of a tiny file", f"perf script -i {tiny} --no-inline"),
        Contender("slotscope --help", f"{SLOTSCOPE} --help"),
        Contender("slotscope report of a tiny file", f"{SLOTSCOPE} report {tiny}"),
    ]
    return compare(f"{_START_UP}:", commands, folder, rounds)


def collapse_script(option: str | None) -> str | None:
    """Path of the Perl script that folds the output of `perf script`; says so when there is none."""
    found = option or os.environ.get("STACKCOLLAPSE_PERF") or shutil.which("stackcollapse-perf.pl")
    if found is None:
        print("stackcollapse-perf.pl: not in PATH nor in $STACKCOLLAPSE_PERF, so the folded export is compared with nothing")
    elif not os.access(found, os.X_OK):
        raise SystemExit(f"{found}: not an executable file")
    return found


def main() -> int:
    names = [*(capture.name for capture in CAPTURES), _START_UP]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("/tmp/slotscope-bench"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", action="append", choices=names, help="measure these alone; may be repeated")
    parser.add_argument("--stackcollapse", metavar="FILE", help="stackcollapse-perf.pl of FlameGraph")
    arguments = parser.parse_args()
    folder: Path = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    version = subprocess.run(["perf", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    print(f"{version}, Python {sys.version.split()[0]}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print(f"medians of {arguments.rounds} interleaved rounds, largest memory")
    collapse = collapse_script(arguments.stackcollapse)
    chosen = arguments.only or names
    kept = [measure(capture, folder, collapse, arguments.rounds) for capture in CAPTURES if capture.name in chosen]
    if _START_UP in chosen:
        kept.append(measure_start_up(folder, arguments.rounds))
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
