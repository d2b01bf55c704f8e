"""An agent over HTTP that does what a script says: takes jobs, reports about them, uploads captures that the test made."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx

from profiler.codec.container import encode
from profiler.codec.json_values import from_json, to_json
from profiler.model.capture import Capture
from profiler.protocol.addresses import HELLO, JOB_REPORT, JOBS, UPLOAD, UPLOAD_COMMIT, UPLOADS
from profiler.protocol.hello import AgentHello
from profiler.protocol.job import JobKind, JobList, JobOrder, JobReport, JobState
from profiler.protocol.upload import UploadKind, UploadOffer


@dataclass(slots=True)
class ScriptedAgent:
    """``capture_of``: of a job, the capture that it makes.  ``late_ns``: of a job, by how much it begins late.  While the
    aggregator is down everything is asked again."""

    server: str
    token: str
    said: AgentHello
    capture_of: Callable[[JobOrder], Capture]
    late_ns: Callable[[JobOrder], int] = lambda order: 1_000_000
    done: list[JobOrder] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        assert self._thread is not None
        self._thread.join(30)

    def _run(self) -> None:
        with httpx.Client(headers={"Authorization": f"Bearer {self.token}"}, timeout=10, trust_env=False) as client:
            self._ask(client, "POST", HELLO, json=to_json(self.said))
            while not self._stop.is_set():
                answer = self._ask(client, "GET", f"{JOBS}?wait=0.5")
                if answer is None:
                    return
                for order in from_json(JobList, answer.json()).orders:
                    self._work(client, order)

    def _work(self, client: httpx.Client, order: JobOrder) -> None:
        self._report(client, order, JobReport(JobState.ACCEPTED))
        if order.kind is JobKind.SWAP:
            self._report(client, order, JobReport(JobState.DONE))
            return
        end_ns = order.start_at_ns + round(order.window_s * 1e9)
        self._stop.wait(max(0.0, (end_ns - time.time_ns()) / 1e9))
        data = encode(self.capture_of(order))
        sha256 = hashlib.sha256(data).hexdigest()
        begun_ns = order.start_at_ns + self.late_ns(order)
        self._report(client, order, JobReport(JobState.DONE, "", begun_ns, (sha256,)))
        offer = UploadOffer(sha256, len(data), UploadKind.CAPTURE, order.id)
        self._ask(client, "POST", UPLOADS, json=to_json(offer))
        self._ask(client, "PUT", f"{UPLOAD.format(sha256=sha256)}?offset=0", content=data)
        committed = self._ask(client, "POST", UPLOAD_COMMIT.format(sha256=sha256))
        assert committed is None or committed.json() == {"sha256": sha256, "refusal": ""}, committed.text
        self.done.append(order)

    def _report(self, client: httpx.Client, order: JobOrder, report: JobReport) -> None:
        self._ask(client, "POST", JOB_REPORT.format(job=order.id), json=to_json(report))

    def _ask(self, client: httpx.Client, method: str, path: str, **body: object) -> httpx.Response | None:
        """None when the agent is stopped before the aggregator answers."""
        while not self._stop.is_set():
            try:
                answer = client.request(method, self.server + path, **body)  # type: ignore[arg-type]
            except httpx.HTTPError:
                self._stop.wait(0.2)
                continue
            assert answer.status_code < 400, (method, path, answer.text)
            return answer
        return None
