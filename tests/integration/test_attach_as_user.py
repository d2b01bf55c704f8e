"""Many sessions of one ordinary user, whose perfs share what the kernel lets a user lock of memory."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from profiler.store.store import open_store

pytestmark = [pytest.mark.perf, pytest.mark.full, pytest.mark.usefixtures("perf")]

ROOT = Path(__file__).resolve().parents[2]
MODULES = os.pathsep.join((str(ROOT), *(path for path in sys.path if path.endswith("site-packages"))))
SESSIONS = 8
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
MAY_RECORD = ("--inh-caps=+perfmon,+sys_ptrace", "--ambient-caps=+perfmon,+sys_ptrace")
LITTLE_MEMORY = ("prlimit", "--memlock=65536:65536")
TOO_LITTLE = (
    "slotscope: error: perf may not lock enough memory: all sessions of a user share kernel.perf_event_mlock_kb, each takes "
    "264 of it, `sudo sysctl kernel.perf_event_mlock_kb=2640` is enough for 10; or raise `ulimit -l`, or run as root"
)
ENVIRONMENT = {**os.environ, "PYTHONPATH": MODULES, "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.fixture
def python() -> str:
    """An interpreter that this user may execute, with slotscope's modules."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None or shutil.which("prlimit") is None:
        pytest.skip("needs root, setpriv and prlimit")
    for found in (sys.executable, "/usr/bin/python3"):
        probe = "import subprocess, sys, numpy, profiler.cli.main; sys.exit(subprocess.call([sys.executable, '-c', '']))"
        words = [*NOBODY, *MAY_RECORD, found, "-c", probe]
        with contextlib.suppress(OSError):
            if subprocess.run(words, env=ENVIRONMENT, cwd=ROOT, check=False, capture_output=True).returncode == 0:
                return found
    pytest.skip("no interpreter that another user may execute has slotscope's modules")


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """Where everybody may write."""
    directory = Path(tempfile.mkdtemp(prefix="slotscope-user-"))
    directory.chmod(0o777)
    yield directory
    shutil.rmtree(directory)


def test_eight_sessions_with_64_kib_of_locked_memory_record_or_say_what_to_do(python: str, open_directory: Path) -> None:
    with contextlib.ExitStack() as stack:
        targets = [stack.enter_context(subprocess.Popen([*NOBODY, "sleep", "600"])) for _ in range(SESSIONS)]
        for target in targets:
            stack.callback(target.kill)
        words = [*LITTLE_MEMORY, *NOBODY, *MAY_RECORD, python, "-m", "profiler.cli.main"]
        sessions = []
        for number, target in enumerate(targets):
            options = ["--pid", str(target.pid), "--duration", "4", "--window", "2", "--frequency", "99", "--call-graph", "fp"]
            command = [*words, "--store", str(open_directory / f"store-{number}"), "attach", *options]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
            stack.callback(process.kill)
            sessions.append(process)
        ended = [(*process.communicate(timeout=300), process.returncode) for process in sessions]
    assert 0 in {code for _, _, code in ended}, ended
    for number, (_, errors, code) in enumerate(ended):
        told = [line for line in errors.splitlines() if line.startswith("slotscope: error")]
        if code == 0:
            assert told == []
            assert len(open_store(open_directory / f"store-{number}", create=False).runs()) == 2
        else:
            assert code == 1
            assert told == [TOO_LITTLE], errors
        assert "Traceback" not in errors
