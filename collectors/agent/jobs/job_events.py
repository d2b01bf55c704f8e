"""How a job tells its agent what becomes of it."""

from __future__ import annotations

import json
import os
import threading

from collectors.agent.jobs.job_values import JobEvent, JobEventKind
from profiler.codec.json_values import to_json


class JobEvents:
    """Writes events to a descriptor; several threads may tell of some.  Nobody reads any more: nothing is told."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def ready(self) -> None:
        self.tell(JobEvent(JobEventKind.READY))

    def begun(self, monotonic_ns: int) -> None:
        self.tell(JobEvent(JobEventKind.BEGUN, monotonic_ns=monotonic_ns))

    def progress(self, detail: str) -> None:
        self.tell(JobEvent(JobEventKind.PROGRESS, detail))

    def done(self, detail: str) -> None:
        self.tell(JobEvent(JobEventKind.DONE, detail))

    def failed(self, detail: str) -> None:
        self.tell(JobEvent(JobEventKind.FAILED, detail))

    def tell(self, event: JobEvent) -> None:
        data = json.dumps(to_json(event)).encode() + b"\n"
        with self._lock:
            try:
                while data:
                    data = data[os.write(self._descriptor, data) :]
            except BrokenPipeError:  # the agent was killed, and the guard ends this process
                return
