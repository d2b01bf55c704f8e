"""Prometheus pages: what is read on them, and what makes a window count for nothing."""

from __future__ import annotations

import http.server
import re
import threading
import time
from collections.abc import Iterator

import pytest

from collectors import prometheus
from collectors.prometheus import PageMetric, check_series, fetch_page, page_metrics, parse_page, parse_series
from profiler.errors import CaptureError, UsageError
from profiler.model.run import Metric

# Lines as in the examples of the format's description, with the peculiarities that it allows.
PAGE = r"""# HELP request_seconds Time, with \\ and a line\nbreak
# TYPE request_seconds histogram
request_seconds_bucket{path="/",le="+Inf"} 4
request_seconds_sum{path="/"} 2.0
request_seconds_count{path="/"} 4
request_seconds_sum { path="/x,\"}\\\n", } 3.5e0 1395066363000
request_seconds_sum{path="/x,\"}\\\n",} 3.5e0 1395066363000
request_seconds_count{path="/x,\"}\\\n",} 1 # {trace="a"} 0.67
rpc_size_sum 1.7560473e+07
rpc_size_count 2693
broken_sum{path= 3
process_start_time_seconds 1.5e9
"""
REQUESTS = parse_series("request", "request_seconds")
SIZES = parse_series("size", "rpc_size")


def test_labels_values_and_time_stamps() -> None:
    page = parse_page(PAGE, (REQUESTS, SIZES))
    odd = frozenset({("path", '/x,"}\\\n')})
    assert page.counters[0].counts == {frozenset({("path", "/")}): 4.0, odd: 1.0}
    assert page.counters[0].sums == {frozenset({("path", "/")}): 2.0, odd: 3.5}
    assert page.counters[1].sums == {frozenset(): 17560473.0}
    assert page.process_started_s == 1.5e9


@pytest.mark.parametrize(
    ("series", "message"),
    [
        ("request_second", "the page has no request_second with _sum and _count; the nearest is request_seconds"),
        ("process_start_time_seconds", "the page has no process_start_time_seconds with _sum and _count"),
        ('request_seconds{paht="/"}', "request_seconds has no label paht; the nearest is path"),
    ],
)
def test_what_the_page_does_not_have(series: str, message: str) -> None:
    with pytest.raises(UsageError, match="^" + re.escape(f"metric 'm': {message}")):
        check_series(PAGE, (parse_series("m", series),))


def test_what_may_still_come() -> None:
    """A value of a label, and a summary that is announced."""
    page = f"{PAGE}# TYPE proof_seconds summary\n"
    metrics = (REQUESTS, parse_series("p", "proof_seconds"), parse_series("y", 'request_seconds{path="/y"}'))
    assert check_series(page, metrics) == (
        "metric 'p': no proof_seconds on the page yet",
        "metric 'y': no request_seconds{path=\"/y\"} on the page yet",
    )


def between(before: str, after: str, *metrics: PageMetric) -> tuple[Metric, ...]:
    return page_metrics(metrics, parse_page(before, metrics), parse_page(after, metrics))


def test_means_of_the_window_alone() -> None:
    """(2.6 - 2.0 + 4.1 - 3.5) s over (6 - 4 + 2 - 1) observations, and (2.4 - 2.0) / (6 - 4) of one path."""
    after = PAGE.replace('sum{path="/"} 2.0', 'sum{path="/"} 2.6').replace('count{path="/"} 4', 'count{path="/"} 6')
    after = after.replace("3.5e0", "4.1").replace(",} 1 #", ",} 2 #").replace("2693", "2695").replace("e+07", "e+07")
    (request, size) = between(PAGE, after.replace("1.7560473e+07", "17560573"), REQUESTS, SIZES)
    assert (request.unit, size.unit) == ("ns", "")
    assert request.value == pytest.approx(1.2 / 3 * 1e9)
    assert size.value == 50
    (of_path,) = between(PAGE, after, parse_series("r", 'request_seconds{path="/"}'))
    assert of_path.value == pytest.approx(0.3e9)


def test_series_that_begin_in_the_window_begin_at_0() -> None:
    (metric,) = between("", "a_seconds_sum 3\na_seconds_count 2\n", parse_series("a", "a_seconds"))
    assert metric.value == 1.5e9


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("a_sum 9\na_count 9\n", "a_sum 1\na_count 1\n", "were reset"),
        ('a_sum{x="1"} 9\na_count{x="1"} 9\n', 'a_sum{x="2"} 99\na_count{x="2"} 99\n', "were reset"),
        ("a_sum 9\na_count 9\n", "a_sum 9\na_count 9\n", "no observation"),
        ("a_sum 9\na_count 9\n", "a_sum NaN\na_count 10\n", "adds up to no number"),
        ("a_sum 9\na_count 9\n", "b 1\n", "has no a with _sum and _count"),
        ("process_start_time_seconds 5\n", "process_start_time_seconds 6\na_sum 9\na_count 9\n", "restarted in the window"),
    ],
)
def test_windows_that_do_not_count(before: str, after: str, reason: str) -> None:
    with pytest.raises(CaptureError, match=reason):
        between(before, after, parse_series("m", "a"))


@pytest.mark.parametrize("text", ["", "a b", "a{", 'a{b="c"', "a{b=c}", "1a", "a_sum", "a_count", "a_bucket"])
def test_series_that_are_none(text: str) -> None:
    with pytest.raises(UsageError):
        parse_series("m", text)


class Pages(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/gone":
            self.send_error(404)
            return
        self.send_response(200)
        self.end_headers()
        if self.path == "/slow":
            for _ in range(40):
                self.wfile.write(b"# waiting\n")
                self.wfile.flush()
                time.sleep(0.05)
        elif self.path == "/large":
            self.wfile.write(b"# padding\n" * 20_000)
        else:
            self.wfile.write(PAGE.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # nobody is there, and nobody asks
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_pages_are_fetched_within_limits(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fetch_page(f"{address}/metrics", (SIZES,)).counters[0].counts == {frozenset(): 2693.0}
    with pytest.raises(CaptureError, match="/gone: the server answered 404"):
        fetch_page(f"{address}/gone", (SIZES,))
    monkeypatch.setattr(prometheus, "MOST_BYTES", 100_000)
    with pytest.raises(CaptureError, match="is no page of metrics"):
        fetch_page(f"{address}/large", (SIZES,))
    monkeypatch.setattr(prometheus, "PAGE_TIMEOUT_S", 0.2)
    with pytest.raises(CaptureError, match="not read within"):
        fetch_page(f"{address}/slow", (SIZES,))
    with pytest.raises(CaptureError, match="cannot be read: Connection refused"):
        fetch_page("http://127.0.0.1:9/metrics", (SIZES,))
