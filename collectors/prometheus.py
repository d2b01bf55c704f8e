"""Pages of metrics in Prometheus' text format, and means between two of them.

The format is that of prometheus.io/docs/instrumenting/exposition_formats and of OpenMetrics 1.0, of which a page needs only
the lines ``name{label="value",...} number``; whatever else stands on it is passed over.  A histogram or summary ``name`` has
the counters ``name_sum`` and ``name_count`` for each set of labels.
"""

from __future__ import annotations

import difflib
import math
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping
from http.client import HTTPException
from types import MappingProxyType

from profiler.errors import CaptureError, UsageError
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import Metric

MOST_BYTES = 32 * 1024 * 1024
PAGE_TIMEOUT_S = 10.0
START_TIME = "process_start_time_seconds"
Labels = frozenset[tuple[str, str]]
# Names that say what the numbers are in; the values of other series have no unit.
_UNITS_NS: Mapping[str, float] = MappingProxyType(
    {"_seconds": 1e9, "_milliseconds": 1e6, "_microseconds": 1e3, "_nanoseconds": 1.0}
)
_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(,|$)')
_SERIES = re.compile(rf'({_NAME})(?:\{{((?:[^"}}]|"(?:[^"\\]|\\.)*")*)\}})?')
_SAMPLE = re.compile(rf"{_SERIES.pattern}[ \t]+(\S+)")
_ANNOUNCED = re.compile(rf"^#[ \t]+TYPE[ \t]+({_NAME})[ \t]+(?:histogram|summary)\b", re.MULTILINE)
_ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


@dataclass(frozen=True, slots=True)
class PageMetric:
    """``name``: of the metric, ``series``: of the histogram or summary, without ``_sum``; of its series those that have all of
    ``labels``."""

    name: str
    series: str
    labels: Labels


@dataclass(frozen=True, slots=True)
class Counters:
    """One histogram's or summary's counters at one moment, by labels."""

    sums: Mapping[Labels, float]
    counts: Mapping[Labels, float]


@dataclass(frozen=True, slots=True)
class MetricsPage:
    """``counters``: one entry per metric that was asked for, in that order.  ``process_started_s``: Unix time, 0 = not told."""

    counters: tuple[Counters, ...]
    process_started_s: float


def parse_series(name: str, text: str) -> PageMetric:
    """``series`` or ``series{label="value"}``.  ``UsageError`` for anything else."""
    match = _SERIES.fullmatch(text.strip())
    labels = _labels(match[2] or "") if match is not None else None
    if match is None or labels is None:
        raise UsageError(f"""{text!r}: expected a series such as request_seconds or request_seconds{{path="/"}}""")
    if match[1].endswith(("_sum", "_count", "_bucket")):
        raise UsageError(f"{match[1]}: write {match[1].rpartition('_')[0]}; its mean is made of _sum and _count")
    return PageMetric(name, match[1], labels)


def fetch_page(address: str, metrics: tuple[PageMetric, ...]) -> MetricsPage:
    """The counters on the page at an http or https address.  ``CaptureError`` as of ``fetch_text``."""
    return parse_page(fetch_text(address), metrics)


def fetch_text(address: str) -> str:
    """The page at an http or https address.  ``CaptureError``: it cannot be read within 10 s, or has more than 32 MB."""
    try:
        data = _fetched(address, time.monotonic() + PAGE_TIMEOUT_S)
    except urllib.error.HTTPError as error:
        error.close()
        raise CaptureError(f"{address}: the server answered {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        raise CaptureError(f"{address}: cannot be read: {_reason(error.reason)}") from None
    except (OSError, HTTPException, ValueError) as error:
        raise CaptureError(f"{address}: cannot be read: {_reason(error)}") from None
    return data.decode("utf-8", "replace")


def open_address(address: str, timeout_s: float) -> urllib.request._UrlopenRet:
    """Errors of urllib.  What runs on this host is never asked for through a proxy."""
    is_local = urllib.parse.urlsplit(address).hostname in ("localhost", "127.0.0.1", "::1")
    handlers = [urllib.request.ProxyHandler({})] if is_local else []
    return urllib.request.build_opener(*handlers).open(address, timeout=timeout_s)


def _fetched(address: str, deadline: float) -> bytes:
    parts = []
    size = 0
    with open_address(address, PAGE_TIMEOUT_S) as answer:
        while chunk := answer.read1(1 << 16):
            parts.append(chunk)
            size += len(chunk)
            if size > MOST_BYTES:
                raise CaptureError(f"{address}: more than {MOST_BYTES >> 20} MB is no page of metrics")
            if time.monotonic() > deadline:
                raise CaptureError(f"{address}: not read within {PAGE_TIMEOUT_S:.0f} s")
    return b"".join(parts)


def _reason(error: object) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def parse_page(text: str, metrics: tuple[PageMetric, ...]) -> MetricsPage:
    """The counters of ``metrics`` on a page; those that are not there stay empty."""
    wanted = {metric.series + ending for metric in metrics for ending in ("_sum", "_count")} | {START_TIME}
    found: dict[str, dict[Labels, float]] = {name: {} for name in wanted}
    for line in text.splitlines():
        match = _SAMPLE.match(line)
        if match is None or match[1] not in found:
            continue
        labels, value = _labels(match[2] or ""), _number(match[3])
        if labels is not None and value is not None:
            found[match[1]][labels] = value
    counters = tuple(
        Counters(_having(found[metric.series + "_sum"], metric), _having(found[metric.series + "_count"], metric))
        for metric in metrics
    )
    return MetricsPage(counters, max(found[START_TIME].values(), default=0.0))


def check_series(text: str, metrics: tuple[PageMetric, ...]) -> tuple[str, ...]:
    """A line for each metric that has no series on the page yet, as before the first observation.

    ``UsageError`` that names the nearest for what the page does not know: a histogram or summary, or a label of one.
    """
    known = _histograms(text)
    return tuple(line for metric in metrics if (line := _waiting_for(metric, known)))


def _waiting_for(metric: PageMetric, known: Mapping[str, list[Labels]]) -> str:
    if metric.series not in known:
        nearest = _nearest(metric.series, known)
        raise UsageError(f"metric {metric.name!r}: the page has no {metric.series} with _sum and _count{nearest}")
    found = known[metric.series]
    labels = {name for each in found for name, _ in each}
    for name, _ in sorted(metric.labels):
        if found and name not in labels:
            raise UsageError(f"metric {metric.name!r}: {metric.series} has no label {name}{_nearest(name, sorted(labels))}")
    return (
        "" if any(metric.labels <= each for each in found) else f"metric {metric.name!r}: no {_shown(metric)} on the page yet"
    )


def _histograms(text: str) -> dict[str, list[Labels]]:
    """Histograms and summaries that a page announces or has, with the labels of their series, which may come later."""
    found: dict[str, list[Labels]] = {match[1]: [] for match in _ANNOUNCED.finditer(text)}
    for line in text.splitlines():
        match = _SAMPLE.match(line)
        labels = _labels(match[2] or "") if match is not None and match[1].endswith("_count") else None
        if match is not None and labels is not None:
            found.setdefault(match[1].removesuffix("_count"), []).append(labels)
    return found


def _nearest(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(known), 1)
    return f"; the nearest is {close[0]}" if close else ""


def page_metrics(metrics: tuple[PageMetric, ...], before: MetricsPage, after: MetricsPage) -> tuple[Metric, ...]:
    """The mean of each metric's observations between two pages of one process.

    ``CaptureError``: the process restarted in between, or there is no series of that name or no observation.
    """
    if before.process_started_s != after.process_started_s and before.process_started_s:
        raise CaptureError("the process restarted in the window: its page has another process_start_time_seconds")
    return tuple(
        _mean(metric, earlier, later) for metric, earlier, later in zip(metrics, before.counters, after.counters, strict=True)
    )


def _mean(metric: PageMetric, before: Counters, after: Counters) -> Metric:
    if not after.counts or not after.sums:
        raise CaptureError(f"metric {metric.name!r}: the page has no {_shown(metric)} with _sum and _count")
    for labels, count in before.counts.items():
        if after.counts.get(labels, -1.0) < count:
            raise CaptureError(f"metric {metric.name!r}: the counters of {_shown(metric)} were reset in the window")
    count = _increase(before.counts, after.counts)
    if not count > 0:
        raise CaptureError(f"metric {metric.name!r}: {_shown(metric)} has no observation in the window")
    value = _increase(before.sums, after.sums) / count
    if not math.isfinite(value):
        raise CaptureError(f"metric {metric.name!r}: {_shown(metric)} adds up to no number")
    for ending, factor in _UNITS_NS.items():
        if metric.series.endswith(ending):
            return Metric(metric.name, value * factor, "ns", (value * factor,))
    return Metric(metric.name, value, "", (value,))


def _increase(before: Mapping[Labels, float], after: Mapping[Labels, float]) -> float:
    """Of all series together; one that was not there before began at 0."""
    return math.fsum(value - before.get(labels, 0.0) for labels, value in after.items())


def _having(series: Mapping[Labels, float], metric: PageMetric) -> Mapping[Labels, float]:
    return {labels: value for labels, value in series.items() if metric.labels <= labels}


def _shown(metric: PageMetric) -> str:
    labels = ",".join(f'{name}="{value}"' for name, value in sorted(metric.labels))
    return f"{metric.series}{{{labels}}}" if labels else metric.series


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _labels(text: str) -> Labels | None:
    """None when the text is no list of labels; a comma may follow the last one."""
    found = []
    place = 0
    while place < len(text.rstrip()):
        match = _LABEL.match(text, place)
        if match is None:
            return None
        found.append((match[1], re.sub(r"\\.", lambda escape: _ESCAPES.get(escape[0], escape[0]), match[2])))
        place = match.end()
    return frozenset(found)
