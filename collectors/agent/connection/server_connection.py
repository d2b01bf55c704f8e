"""Requests to the aggregator, and answers that are believed only as far as they have the expected form and size.

httpx is an extra and takes long to import: whoever only reads captures has neither.
"""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar
from urllib.parse import quote, urlencode

from collectors.agent.connection.server_errors import RequestRefused, ServerTrouble, TokenRefused
from profiler.codec.json_values import JsonShapeError, from_json, to_json
from profiler.errors import UsageError
from profiler.model.quick_dataclass import dataclass
from profiler.protocol import addresses
from profiler.protocol.clock import ClockReading
from profiler.protocol.hello import AgentHello, Welcome
from profiler.protocol.job import JobList, JobReport
from profiler.protocol.upload import CommitResult, UploadOffer, UploadState, WantedFiles

if TYPE_CHECKING:
    import httpx

Value = TypeVar("Value")
LARGEST_ANSWER_BYTES = 1 << 20
LONGEST_DETAIL = 300
CONNECT_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_S = 30.0
LONGEST_RETRY_AFTER_S = 300.0
# Content that will not be wanted later either: another agent's, gone, too large, or not what it has to be.
_FINAL = frozenset({403, 404, 410, 413, 422})
_PROBLEM = "application/problem+json"


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """``ca``: certificates that vouch for the server, None = those of the system.  ``token``: never shown."""

    url: str
    token: str
    ca: Path | None = None


class ServerConnection:
    """Methods raise ``ServerTrouble``; several threads may use one connection.  Redirects are not followed, settings in the
    environment (proxies, certificates) are not used, and nothing is decompressed."""

    def __init__(self, address: ServerAddress, connections: int = 8) -> None:
        """``UsageError``: httpx is missing, or ``ca`` holds no certificates."""
        try:
            import httpx
        except ImportError:
            raise UsageError("the agent needs httpx: `pip install 'slotscope[agent]'`") from None
        self._url = address.url
        self._httpx_error = httpx.HTTPError
        self._client = httpx.Client(
            verify=_trusted(address.ca) if address.url.startswith("https:") else False,
            headers={"Authorization": f"Bearer {address.token}", "Accept-Encoding": "identity", "User-Agent": "slotscope"},
            follow_redirects=False,
            trust_env=False,
            timeout=httpx.Timeout(ANSWER_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
        )

    def close(self) -> None:
        self._client.close()

    def hello(self, hello: AgentHello) -> Welcome:
        return self._ask(Welcome, "POST", addresses.HELLO, hello)

    def server_time_ns(self) -> int:
        return self._ask(ClockReading, "GET", addresses.CLOCK).server_time_ns

    def jobs(self, known: tuple[str, ...], wait_s: float) -> JobList:
        """Answered when there is a job that is not among ``known``, or one of them is to be ended, or after ``wait_s``."""
        query = urlencode([("wait", f"{wait_s:g}"), *(("known", job) for job in known)])
        return self._ask(JobList, "GET", f"{addresses.JOBS}?{query}", wait_s=wait_s)

    def report(self, job: str, report: JobReport) -> None:
        self._exchange("POST", addresses.JOB_REPORT.format(job=quote(job, safe="")), _encoded(report))

    def offer(self, offer: UploadOffer) -> UploadState:
        return self._ask(UploadState, "POST", addresses.UPLOADS, offer)

    def send(self, sha256: str, offset: int, chunk: bytes) -> UploadState:
        path = f"{addresses.UPLOAD.format(sha256=sha256)}?offset={offset}"
        return _decoded(UploadState, self._exchange("PUT", path, chunk, "application/octet-stream"))

    def commit(self, sha256: str) -> CommitResult:
        return self._ask(CommitResult, "POST", addresses.UPLOAD_COMMIT.format(sha256=sha256))

    def wanted(self) -> WantedFiles:
        return self._ask(WantedFiles, "GET", addresses.WANTED)

    def _ask(self, kind: type[Value], method: str, path: str, body: object = None, wait_s: float = 0.0) -> Value:
        return _decoded(kind, self._exchange(method, path, b"" if body is None else _encoded(body), wait_s=wait_s))

    def _exchange(
        self, method: str, path: str, body: bytes = b"", content: str = "application/json", wait_s: float = 0.0
    ) -> bytes:
        deadline = time.monotonic() + ANSWER_TIMEOUT_S + wait_s
        headers = {"Content-Type": content} if body else {}
        with self._trouble_named():
            request = self._client.build_request(method, self._url + path, content=body, headers=headers)
            request.extensions["timeout"]["read"] = ANSWER_TIMEOUT_S + wait_s
            answer = self._client.send(request, stream=True)
            try:
                if answer.is_success:
                    return _body(answer, deadline, LARGEST_ANSWER_BYTES)
                self._refuse(answer, deadline)
            finally:
                answer.close()

    def _refuse(self, answer: httpx.Response, deadline: float) -> NoReturn:
        status = answer.status_code
        if answer.is_redirect or status < 400:
            raise ServerTrouble(f"{self._url} answered {status}: the agent follows no redirects; check server in its file")
        detail = _problem_detail(answer, deadline)
        shown = f"{self._url} answered {status}{': ' + detail if detail else ''}"
        if status == 401 or (status == 403 and not answer.request.url.path.startswith(addresses.UPLOADS)):
            raise TokenRefused(f"{shown}: the token is not accepted; put a valid one into the token file and restart the agent")
        if status >= 500 or status in (408, 425, 429):
            raise ServerTrouble(shown, _retry_after_s(answer))
        is_problem = answer.headers.get("Content-Type", "").partition(";")[0].strip() == _PROBLEM
        raise RequestRefused(shown, status, status in _FINAL and is_problem)

    @contextmanager
    def _trouble_named(self) -> Iterator[None]:
        try:
            yield
        except self._httpx_error as error:
            raise ServerTrouble(f"{self._url}: {_reason(error)}") from None
        except (OSError, ValueError) as error:
            raise ServerTrouble(f"{self._url}: {_reason(error)}") from None


def _trusted(ca: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=None if ca is None else str(ca))
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"{ca}: no certificates of an authority can be read ({error})") from None


def _body(answer: httpx.Response, deadline: float, most: int) -> bytes:
    if answer.headers.get("Content-Encoding", "identity") != "identity":
        raise ServerTrouble("the server answered with compressed content that was not asked for")
    found = b""
    for part in answer.iter_raw():
        found += part
        if len(found) > most:
            raise ServerTrouble(f"the server's answer is larger than {most} bytes, which none of its answers is")
        if time.monotonic() > deadline:
            raise ServerTrouble("the server's answer did not come to its end in time")
    return found


def _encoded(value: object) -> bytes:
    return json.dumps(to_json(value)).encode()


def _decoded(kind: type[Value], data: bytes) -> Value:
    try:
        return from_json(kind, json.loads(data, parse_constant=_refused_number))
    except JsonShapeError as error:
        raise ServerTrouble(f"the server's answer is not understood: {error}") from None
    except (ValueError, RecursionError) as error:
        raise ServerTrouble(f"the server's answer is no JSON ({type(error).__name__})") from None


def _refused_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


def _problem_detail(answer: httpx.Response, deadline: float) -> str:
    """What a problem document says; "" when there is none."""
    try:
        document = json.loads(_body(answer, deadline, LARGEST_ANSWER_BYTES))
    except (ServerTrouble, ValueError, RecursionError):
        return ""
    detail = document.get("detail") or document.get("title") if isinstance(document, dict) else ""
    return detail[:LONGEST_DETAIL] if isinstance(detail, str) else ""


def _retry_after_s(answer: httpx.Response) -> float:
    text = answer.headers.get("Retry-After", "")
    return min(float(text), LONGEST_RETRY_AFTER_S) if text.isascii() and text.isdigit() and len(text) < 10 else 0.0


def _reason(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text or type(error).__name__
