"""The process of one job: ``python -m collectors.agent.jobs.job_process``, a ``JobTask`` on standard input, ``JobEvent`` lines
on standard output.

SIGTERM ends it in order.  When the agent is killed its guard does the same, and shortly after for certain; the guards that
the job's own programs have see to those.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from collectors.agent.jobs.attach_job import attach_job
from collectors.agent.jobs.job_events import JobEvents
from collectors.agent.jobs.job_values import JobTask
from collectors.agent.jobs.run_job import run_job, swap_job
from profiler.attach.stop_request import StopRequest
from profiler.codec.json_values import from_json
from profiler.errors import AnalysisError, CaptureError, FormatError, StoreError, SymbolizeError, UsageError
from profiler.protocol.job import JobKind
from profiler.store.store import open_store

_EXPECTED = (AnalysisError, CaptureError, FormatError, StoreError, SymbolizeError, UsageError)


def main() -> int:
    """0 also when the job failed: its last event says so."""
    # What programs of the job print must not stand between the events.
    events = JobEvents(os.dup(1))
    os.dup2(2, 1)
    text = sys.stdin.read()
    if not text:  # the agent was killed before it said anything
        return 1
    task = from_json(JobTask, json.loads(text))
    os.umask(0o077)
    try:
        _carry_out(task, events)
    except _EXPECTED as error:
        events.failed(str(error))
    except KeyboardInterrupt:
        events.failed("the end was asked for")
    except OSError as error:
        events.failed(f"{f'{error.filename}: ' if error.filename else ''}{error.strerror or error}")
    except MemoryError:
        events.failed("out of memory")
    return 0


def _carry_out(task: JobTask, events: JobEvents) -> None:
    store = open_store(Path(task.store), create=False)
    if task.order.kind is JobKind.ATTACH:
        assert task.target is not None
        with StopRequest() as stop:
            attach_job(task, task.target, store, stop, events)
        return
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    if task.order.kind is JobKind.RUN:
        assert task.workload is not None
        run_job(task, task.workload, store, events)
    else:
        assert task.target is not None
        swap_job(task, task.target, store, events)


if __name__ == "__main__":
    sys.exit(main())
