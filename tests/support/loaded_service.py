"""A small HTTP service and a load for it, run as programs of their own by the tests of services.

loaded_service.py serve PORT SPIN_US    answers / after spinning for SPIN_US of CPU time, /metrics with the times it took
loaded_service.py load PORT SECONDS     requests one after the other, then prints count and percentiles
loaded_service.py page PORT MEAN_MS     answers /metrics with a counter that rises by itself, MEAN_MS per observation
"""

from __future__ import annotations

import http.client
import itertools
import signal
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SERIES = "handling_seconds"


class _Observations:
    def __init__(self) -> None:
        self.count = 0
        self.sum_s = 0.0

    def add(self, seconds: float) -> None:
        self.count += 1
        self.sum_s += seconds

    def page(self) -> bytes:
        labels = '{path="/"}'
        lines = (f"# TYPE {SERIES} histogram", f"{SERIES}_sum{labels} {self.sum_s!r}", f"{SERIES}_count{labels} {self.count}")
        return "\n".join((*lines, "")).encode()


def spin(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def serve(port: int, spin_s: float) -> None:
    observations = _Observations()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 1 << 16  # one packet an answer

        def do_GET(self) -> None:
            if self.path == "/metrics":
                body = observations.page()
            else:
                started = time.thread_time()
                spin(spin_s)
                observations.add(time.thread_time() - started)
                body = b"done"
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    print(f"listening on {port}", flush=True)
    server.serve_forever()


def load(port: int, seconds: float) -> None:
    is_asked: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: is_asked.append(number))
    connection = http.client.HTTPConnection("127.0.0.1", port)
    taken = []
    end = time.monotonic() + seconds
    while time.monotonic() < end and not is_asked:
        started = time.monotonic()
        connection.request("GET", "/")
        assert connection.getresponse().read() == b"done"
        taken.append(time.monotonic() - started)
    taken.sort()
    print(f"requests {len(taken)}")
    print(f"p50 {1e3 * taken[len(taken) // 2]:.4f} ms")
    print(f"p99 {1e3 * taken[len(taken) * 99 // 100]:.4f} ms")


def page(port: int, mean_ms: float) -> None:
    """Observations come with time, 1000 a second, around the mean and each window a little different."""
    observations = _Observations()
    started = time.monotonic()
    wobble = itertools.cycle((1.0,))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            due = int(1000 * (time.monotonic() - started))
            factor = next(wobble)
            while observations.count < due:
                observations.add(factor * mean_ms / 1e3)
            body = observations.page()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    action, of_port, number = sys.argv[1:]
    {"serve": lambda: serve(int(of_port), float(number) / 1e6), "load": lambda: load(int(of_port), float(number))}.get(
        action, lambda: page(int(of_port), float(number))
    )()
