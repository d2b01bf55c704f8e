"""What hyperfine and Google Benchmark write as JSON: times of runs without any profile."""

from __future__ import annotations

import json
from collections.abc import Callable

from collectors.importers.benchmark_file import BenchmarkFile, MeasuredArm
from collectors.importers.google_benchmark import google_benchmark_arms
from collectors.importers.hyperfine import hyperfine_arms
from collectors.perf_data.byte_source import ByteSource
from profiler.errors import FormatError
from profiler.model.run import CaptureInfo

_SNIFFED_BYTES = 1 << 16
# A file of a million runs; beyond this it is no benchmark's output.
_MOST_BYTES = 256 << 20


ArmsReader = Callable[[BenchmarkFile], tuple[MeasuredArm, ...]]


def benchmark_reader(source: ByteSource) -> ArmsReader | None:
    """What reads this JSON, ``None`` when it is of neither program.  Decided by the start of the text."""
    head = bytes(source.window(0, _SNIFFED_BYTES)).lstrip()
    if not head.startswith(b"{"):
        return None
    if b'"results"' in head and b'"command"' in head:
        return hyperfine_arms
    if b'"context"' in head and b'"benchmarks"' in head:
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
