"""Commands measured with everything they start."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from collectors.processes.process_tree import TreeCommand, run_tree
from profiler.errors import CaptureError

SPIN = "import time\nend = time.process_time() + {}\nwhile time.process_time() < end: pass\n"


def command(directory: Path, script: str, **changes: object) -> TreeCommand:
    made = TreeCommand((sys.executable, "-c", script), directory, directory / "log")
    return TreeCommand(**{**{name: getattr(made, name) for name in made.__slots__}, **changes})  # type: ignore[arg-type]


def test_children_count(tmp_path: Path) -> None:
    script = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {SPIN.format(0.3)!r}])\n{SPIN.format(0.2)}"
    used = run_tree(command(tmp_path, script))
    assert used.exit_code == 0
    assert 0.5e9 <= used.cpu_ns < 1.5e9
    assert used.wall_ns >= 0.5e9


def test_memory_of_processes_at_one_time(tmp_path: Path) -> None:
    """Two processes of 60 MB each at the same time have more than one of them alone."""
    hold = "import time\nheld = bytearray(60_000_000)\ntime.sleep(0.6)\n"
    script = f"import subprocess, sys\nchild = subprocess.Popen([sys.executable, '-c', {hold!r}])\n{hold}child.wait()\n"
    used = run_tree(command(tmp_path, script))
    assert 120e6 <= used.peak_bytes <= 200e6


def test_environment_directory_and_output(tmp_path: Path) -> None:
    script = "import os\nprint(os.environ['FLAVOUR'], os.getcwd())\nraise SystemExit(3)"
    used = run_tree(command(tmp_path, script, environment=(("FLAVOUR", "thin"),)))
    assert used.exit_code == 3
    assert (tmp_path / "log").read_text().split() == ["thin", str(tmp_path)]


def test_too_long(tmp_path: Path) -> None:
    script = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])"
    started = time.monotonic()
    used = run_tree(command(tmp_path, script, timeout_s=0.5))
    assert used.timed_out
    assert time.monotonic() - started < 20


def test_what_cannot_be_started(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"no-such-builder: cannot be run in .*: No such file"):
        run_tree(TreeCommand(("no-such-builder",), tmp_path, tmp_path / "log"))
