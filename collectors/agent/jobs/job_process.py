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

from collectors.agent.jobs.job_events import JobEvents
from collectors.agent.jobs.job_values import JobTask
from profiler.attach.stop_request import StopRequest
from profiler.codec.json_values import from_json
from profiler.errors import AnalysisError, CaptureError, FormatError, StoreError, SymbolizeError, UsageError
from profiler.protocol.job import JobKind
from profiler.store.store import Store, open_store

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
    """Imports what the job needs and no more: many may begin at the same time, and all are to be ready for it."""
    store = open_store(Path(task.store), create=False)
    if task.order.kind is JobKind.ATTACH:
        _watch(task, store, events)
        return
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    from collectors.agent.jobs.run_job import run_job, swap_job

    if task.order.kind is JobKind.RUN:
        assert task.workload is not None
        run_job(task, task.workload, store, events)
    else:
        assert task.target is not None
        swap_job(task, task.target, store, events)


def _watch(task: JobTask, store: Store, events: JobEvents) -> None:
    assert task.target is not None
    with StopRequest() as stop:
        if task.order.is_profiled:
            from collectors.agent.jobs.attach_job import attach_job

            attach_job(task, task.target, store, stop, events)
        else:
            from collectors.agent.jobs.plain_job import PlainJob

            PlainJob(task, task.target, store, stop, events).run()


if __name__ == "__main__":
    sys.exit(main())
