"""An agent's part in a job, without its threads: taken, captured, reported, uploaded, and cleaned up after.

A spool that knows the job already is taken up as an agent does at its start.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

from collectors.agent.agent_log import AgentLog
from collectors.agent.config.agent_config import AgentConfig
from collectors.agent.connection.report_delivery import ReportDelivery
from collectors.agent.connection.server_connection import ServerAddress, ServerConnection
from collectors.agent.jobs.running_jobs import RunningJobs
from collectors.agent.spool.spool import Spool, open_spool, session_command
from collectors.agent.upload.upload_queue import UploadQueue
from collectors.processes.guard import GroupGuard
from profiler.protocol.hello import AgentLimits
from profiler.protocol.job import JobReport, JobState
from profiler.store.records import SessionStart
from support.fake_aggregator import TOKEN
from support.sample_captures import run_info, two_stack_capture

JOB, CAPTURES = "job-1", 2
_LIMIT_BYTES = 1 << 30


def live(directory: Path, say: Callable[[str], None]) -> None:
    """``directory``: with the aggregator's address in "server".  Says when a step is over."""
    server = (directory / "server").read_text()
    log, spool = AgentLog(sys.stderr, TOKEN), open_spool(directory / "spool", _LIMIT_BYTES)
    connection = ServerConnection(ServerAddress(server, TOKEN))
    delivery, queue = ReportDelivery(connection, spool.tables, log), UploadQueue(spool, connection, log)
    config = AgentConfig(server, TOKEN, directory / "spool", AgentLimits(3600.0, 9999, _LIMIT_BYTES, 0.0))
    # No process is started, so none is guarded.
    jobs = RunningJobs(config, spool, cast(GroupGuard, None), log, delivery.put)
    spool.clean()
    if not spool.tables.jobs(JOB):
        _capture(spool, say)
    jobs.recover()
    delivery.deliver()
    say("told")
    queue.send_waiting()
    spool.clean()


def _capture(spool: Spool, say: Callable[[str], None]) -> None:
    """As the job's process does it, between the agent's first and last note of it."""
    spool.tables.put_report(JOB, JobReport(JobState.ACCEPTED))
    say("taken")
    start = SessionStart("2026-03-01T10:00:00+00:00", "host1", session_command(JOB), 0, has_rounds=False)
    session = spool.store.begin_session(start)
    for position in range(CAPTURES):
        spool.store.add(two_stack_capture(run_info(session, "base", position=position), repeat=100))
        say(f"captured {position}")
