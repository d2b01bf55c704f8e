"""An aggregator whose disk fills up, on a small file system of its own: nothing is lost, and it heals when there is room."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent
MOUNT = 'mount -t tmpfs -o size=1536k tmpfs "$0" && exec "$@"'
# Uploads captures until there is no room, at whichever step; then makes room and goes on with what was not finished.
FILLING = """
import sys
from dataclasses import replace
from pathlib import Path
import numpy as np
from profiler.codec.container import encode
from profiler.errors import StoreFullError
from support.sample_captures import run_info, two_stack_capture
from support.uploading import offer_of, open_bench, upload

disk = Path(sys.argv[1])
bench = open_bench(disk / "store")
ingest = replace(bench.ingest, limits=replace(bench.ingest.limits, free_bytes=int(sys.argv[2])))
ballast = disk / "ballast"
ballast.write_bytes(bytes(400_000))

def content(number):
    capture = two_stack_capture(run_info("s", "x", position=number), repeat=2000)
    noise = np.random.default_rng(number).integers(0, 1 << 40, len(capture.samples))
    return encode(replace(capture, samples=replace(capture.samples, weight=noise)))

taken, full = 0, 0
for number in range(30):
    data = content(number)
    try:
        assert upload(ingest, data).refusal == ""
        taken += 1
    except StoreFullError as error:
        full += 1
        assert str(disk) in str(error) and "\\n" not in str(error)
        if full == 3:
            break
assert taken and full == 3, (taken, full)
assert len(ingest.store.runs()) == taken
assert [len(ingest.store.load(run).samples) for run in ingest.store.runs()] == [6000] * taken
ballast.unlink()
assert upload(ingest, data).refusal == ""
assert upload(ingest, content(0)).refusal == ""
assert len(ingest.store.runs()) == taken + 1
assert list((disk / "store/tmp").iterdir()) == []
print(taken)
"""


@pytest.mark.parametrize("free_bytes", [-(1 << 30), 0, 300_000])
def test_a_full_disk_loses_nothing_and_heals(tmp_path: Path, free_bytes: int) -> None:
    """Below 0 the disk itself says no, at any step; else offers and chunks are refused before."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("a file system of its own can be mounted by root only")
    disk = tmp_path / "disk"
    disk.mkdir()
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS.parent), str(TESTS)])}
    command = ["unshare", "--mount", "sh", "-c", MOUNT, str(disk), sys.executable, "-c", FILLING, str(disk), str(free_bytes)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"no file system of its own here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    assert 3 <= int(done.stdout) <= 25
