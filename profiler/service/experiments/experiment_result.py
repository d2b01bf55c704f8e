"""What an experiment found, as `slotscope experiment show` renders it: in a process of its own, whose memory and time do not
burden the aggregator."""

from __future__ import annotations

import subprocess
import sys
from enum import StrEnum
from pathlib import Path

from profiler.errors import AnalysisError
from profiler.store.debug_tree import debug_directory

TIME_LIMIT_S = 300.0


class ResultFormat(StrEnum):
    MARKDOWN = "markdown"
    JSON = "json"


def experiment_result(store: Path, session: str, format_: ResultFormat) -> bytes:
    """UTF-8.  ``AnalysisError``: the reason why nothing can be shown, in one line."""
    debug = debug_directory(store)
    command = [sys.executable, "-m", "profiler.cli.main", "--store", str(store)]
    command += ["experiment", "show", session, "--format", format_.value]
    command += ["--debug-dir", str(debug)] if debug.is_dir() else []
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIME_LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        raise AnalysisError(
            f"it took more than {TIME_LIMIT_S:.0f} s; on the aggregator's host there is no such limit: "
            f"`slotscope --store DIR experiment show {session}`"
        ) from None
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise AnalysisError(lines[-1].removeprefix("slotscope: error: ") if lines else f"it ended with {done.returncode}")
    return done.stdout
