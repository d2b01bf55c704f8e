"""What hyperfine and Google Benchmark write as JSON: times of runs without any profile."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from collectors.perf_data.byte_source import ByteSource
from profiler.errors import FormatError
from profiler.model.run import CaptureInfo, Metric, RunIdentity, RunMode, RunOutcome

_SNIFFED_BYTES = 1 << 16
# A file of a million runs; beyond this it is no benchmark's output.
_MOST_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class MeasuredArm:
    """``name``: what was measured; ``runs`` in the file's order, failed ones with the reason."""

    name: str
    runs: tuple[CaptureInfo, ...]


@dataclass(frozen=True, slots=True)
class BenchmarkFile:
    """``source``: the file's name for messages; ``info``: what is known of all of its runs."""

    source: str
    document: Mapping[str, Any]
    info: CaptureInfo

    def error(self, message: str) -> FormatError:
        return FormatError(self.source, message)

    def run(self, arm: str, number: int, outcome: RunOutcome) -> CaptureInfo:
        """Belongs to no session, so it is never taken for the partner of another arm's run."""
        identity = RunIdentity("", arm, number, RunMode.PLAIN, position=number)
        return replace(self.info, identity=identity, outcome=outcome)


ArmsReader = Callable[[BenchmarkFile], tuple[MeasuredArm, ...]]


def benchmark_reader(source: ByteSource) -> ArmsReader | None:
    """What reads this JSON, ``None`` when it is of neither program.  Decided by the start of the text."""
    head = bytes(source.window(0, _SNIFFED_BYTES)).lstrip()
    if not head.startswith(b"{"):
        return None
    if b'"results"' in head and b'"command"' in head:
        from collectors.importers.hyperfine import hyperfine_arms

        return hyperfine_arms
    if b'"context"' in head and b'"benchmarks"' in head:
        from collectors.importers.google_benchmark import google_benchmark_arms

        return google_benchmark_arms
    return None


def read_benchmark(source: ByteSource, info: CaptureInfo, read: ArmsReader) -> tuple[MeasuredArm, ...]:
    """At least one arm with at least one run.  ``FormatError`` for text that is no JSON or lacks what it should hold."""
    data = bytes(source.window(0, _MOST_BYTES + 1))
    if len(data) > _MOST_BYTES:
        raise FormatError(source.name, f"more than {_MOST_BYTES >> 20} MB of JSON: no benchmark writes so much")
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FormatError(source.name, f"not valid JSON ({error}): the benchmark may have been cut short") from None
    if not isinstance(document, dict):
        raise FormatError(source.name, "no JSON object")
    arms = read(BenchmarkFile(source.name, document, info))
    if not any(arm.runs for arm in arms):
        raise FormatError(source.name, "no run of any benchmark in it")
    return arms


def number(value: object) -> float | None:
    """A finite number, ``None`` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def duration(name: str, value_ns: float) -> Metric:
    """A metric in ns."""
    return Metric(name, value_ns, "ns", (value_ns,))
