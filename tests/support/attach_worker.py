"""Attaches as an agent's process does: no terminal, a moment to begin, an observer.  Prints what the observer is told, one JSON
list a line, times by CLOCK_MONOTONIC.

    attach_worker STORE PID INSTANCE BEGIN_AT_NS WINDOWS      ends early by SIGTERM, or when standard input is closed
"""

from __future__ import annotations

import json
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from collectors.targets.target_finder import TargetFinder
from profiler.attach.plan import AttachPlan
from profiler.attach.session import attach_session
from profiler.attach.stop_request import StopRequest
from profiler.errors import SlotscopeError
from profiler.experiment.plan.call_graph_request import CallGraphRequest
from profiler.model.attach_summary import AttachSummary, KeptWindow
from profiler.store.store import open_store


@dataclass(frozen=True, slots=True)
class Printer:
    def told(self, line: str) -> None:
        self._say("told", line)

    def attached(self, session: str) -> None:
        self._say("attached", session)

    def begun(self, begun_ns: int) -> None:
        self._say("begun", begun_ns)

    def window_kept(self, window: KeptWindow) -> None:
        self._say("kept", [window.key.session, window.key.number])

    def ended(self, summary: AttachSummary) -> None:
        self._say("ended", summary.ending)

    def _say(self, what: str, value: object) -> None:
        print(json.dumps([what, value, time.monotonic_ns()]), flush=True)


def main() -> int:
    store, pid, instance, begin_at_ns, windows = sys.argv[1:]
    plan = AttachPlan(
        TargetFinder(pid=int(pid)),
        variant="ordered",
        duration_s=float(windows),
        window_s=1.0,
        frequency_hz=499,
        call_graph=CallGraphRequest("fp"),
        begin_at_ns=int(begin_at_ns),
        instance=instance,
    )
    with StopRequest() as stop:
        threading.Thread(target=lambda: (sys.stdin.read(), stop.ask()), daemon=True).start()
        try:
            attach_session(plan, open_store(Path(store), create=True), stop, Printer())
        except SlotscopeError as error:
            print(json.dumps(["refused", str(error), time.monotonic_ns()]), flush=True)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
