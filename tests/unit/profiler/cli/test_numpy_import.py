"""The setting for numpy's import is gone afterwards, and never takes the place of the user's."""

from __future__ import annotations

import os
import subprocess
import sys

SCRIPT = (
    "import os, sys\n"
    "from profiler.cli.numpy_import import import_numpy\n"
    "import_numpy()\n"
    "print(os.environ.get('OPENBLAS_NUM_THREADS'), 'numpy' in sys.modules, len(os.listdir('/proc/self/task')))\n"
)


def run_with(variables: dict[str, str]) -> list[str]:
    inherited = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=inherited | variables, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_one_thread_and_no_trace_of_the_setting() -> None:
    assert run_with({}) == ["None", "True", "1"]


def test_a_setting_of_the_user_stays() -> None:
    assert run_with({"OPENBLAS_NUM_THREADS": "2"})[0] == "2"
