"""An aggregator for tests of the agent: what it answers is decided by the test, and may be hostile."""

from __future__ import annotations

import hashlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from profiler.codec.json_values import from_json, to_json
from profiler.protocol.clock import ClockReading
from profiler.protocol.hello import PROTOCOL_VERSION, AgentHello, Welcome
from profiler.protocol.job import JobList, JobOrder, JobReport
from profiler.protocol.upload import CommitResult, UploadOffer, UploadState, WantedFiles

TOKEN = "slsc_" + "t" * 43


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, without what does not matter.  ``path``: with its query."""

    method: str
    path: str
    body: bytes
    token: str


Answer = Callable[[Asked, BaseHTTPRequestHandler], bool]


@dataclass(slots=True)
class FakeAggregator:
    """``orders``, ``cancelled``: what it asks for.  ``reports``: by job, in the order in which they came.  ``received``:
    content of uploads; ``commits``: SHA-256 of every commit, repeated ones too.  ``answer``: looks at every request first;
    True = it has answered.  ``clock_ns``: its clock.  ``refuse``: what commits are refused with."""

    orders: list[JobOrder] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    hellos: list[AgentHello] = field(default_factory=list)
    reports: dict[str, list[JobReport]] = field(default_factory=dict)
    offers: dict[str, UploadOffer] = field(default_factory=dict)
    received: dict[str, bytearray] = field(default_factory=dict)
    commits: list[str] = field(default_factory=list)
    wanted: tuple[str, ...] = ()
    refuse: str = ""
    answer: Answer | None = None
    clock_ns: Callable[[], int] = time.time_ns
    asked: list[Asked] = field(default_factory=list)
    port: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def committed(self) -> dict[str, bytes]:
        with self.lock:
            return {sha: bytes(self.received[sha]) for sha in dict.fromkeys(self.commits)}

    def last(self, job: str) -> JobReport | None:
        with self.lock:
            return self.reports.get(job, [None])[-1]  # type: ignore[list-item]

    def states(self, job: str) -> list[str]:
        with self.lock:
            return [report.state.value for report in self.reports.get(job, [])]

    def wait_for(self, holds: Callable[[], object], seconds: float = 60.0, what: str = "") -> None:
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, f"not in time: {what}; reports {self.reports}, commits {len(self.commits)}"
            time.sleep(0.05)

    def wait_until_final(self, job: str, seconds: float = 60.0) -> JobReport:
        self.wait_for(lambda: (found := self.last(job)) and found.state.is_final, seconds, f"job {job} to end")
        found = self.last(job)
        assert found is not None
        return found

    def open_orders(self) -> tuple[JobOrder, ...]:
        with self.lock:
            done = {job for job, reports in self.reports.items() if any(report.state.is_final for report in reports)}
            return tuple(order for order in self.orders if order.id not in done)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Heads and bodies are sent apart, and the second would wait 40 ms for the first to be acknowledged.
    disable_nagle_algorithm = True
    fake: FakeAggregator

    def log_message(self, *_: object) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        self._handle()

    do_POST = do_PUT = do_GET

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        asked = Asked(self.command, self.path, body, token)
        with self.fake.lock:
            self.fake.asked.append(asked)
        if self.fake.answer is not None and self.fake.answer(asked, self):
            return
        self._route(asked)

    def _route(self, asked: Asked) -> None:
        fake, parts = self.fake, urlsplit(asked.path)
        query, names = parse_qs(parts.query), parts.path.removeprefix("/api/v1/agent/").split("/")
        if asked.token != TOKEN:
            self._problem(401, "no such token")
        elif names == ["hello"]:
            with fake.lock:
                fake.hellos.append(from_json(AgentHello, json.loads(asked.body)))
            self.say(Welcome(PROTOCOL_VERSION, "host1", 1.0))
        elif names == ["clock"]:
            self.say(ClockReading(fake.clock_ns()))
        elif names == ["jobs"]:
            self._jobs(frozenset(query.get("known", ())), float(query["wait"][0]))
        elif names[0] == "jobs":
            with fake.lock:
                fake.reports.setdefault(names[1], []).append(from_json(JobReport, json.loads(asked.body)))
            self.say_bytes(204, b"")
        elif names == ["wanted"]:
            self.say(WantedFiles(fake.wanted))
        else:
            self._upload(asked, names, query)

    def _jobs(self, known: frozenset[str], wait_s: float) -> None:
        deadline = time.monotonic() + min(wait_s, 5.0)
        while time.monotonic() < deadline:
            orders = self.fake.open_orders()
            if any(order.id not in known for order in orders) or known & frozenset(self.fake.cancelled):
                break
            time.sleep(0.05)
        self.say(JobList(self.fake.open_orders(), tuple(self.fake.cancelled)))

    def _upload(self, asked: Asked, names: list[str], query: dict[str, list[str]]) -> None:
        fake = self.fake
        if names == ["uploads"]:
            offer = from_json(UploadOffer, json.loads(asked.body))
            with fake.lock:
                fake.offers[offer.sha256] = offer
                held = fake.received.setdefault(offer.sha256, bytearray())
            self.say(UploadState(offer.sha256, len(held), offer.sha256 in fake.commits))
        elif len(names) == 2:
            held = fake.received[names[1]]
            if int(query["offset"][0]) != len(held):
                self._problem(409, "another offset")
                return
            held += asked.body
            self.say(UploadState(names[1], len(held)))
        else:
            sha = names[1]
            if not fake.refuse:
                assert hashlib.sha256(fake.received[sha]).hexdigest() == sha
                with fake.lock:
                    fake.commits.append(sha)
            self.say(CommitResult(sha, fake.refuse))

    def _problem(self, status: int, detail: str) -> None:
        self.say_bytes(status, json.dumps({"detail": detail}).encode(), "application/problem+json")

    def say(self, value: object) -> None:
        self.say_bytes(200, json.dumps(to_json(value)).encode())

    def say_bytes(self, status: int, body: bytes, kind: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, *_: object) -> None:
        """Agents are killed in the middle of requests."""

    def get_request(self) -> tuple[socket.socket, object]:
        connection, address = super().get_request()
        self.connections = [*getattr(self, "connections", []), connection]
        return connection, address

    def hang_up(self) -> None:
        for connection in getattr(self, "connections", []):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


@contextmanager
def serving(fake: FakeAggregator) -> Iterator[FakeAggregator]:
    """On a port of its own, or on the one that it had before."""
    handler = type("Handler", (_Handler,), {"fake": fake})
    server = _Server(("127.0.0.1", fake.port), handler)
    fake.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.hang_up()
        server.server_close()
        thread.join()
