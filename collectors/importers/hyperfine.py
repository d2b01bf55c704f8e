"""hyperfine's ``--export-json``: one arm per command, one run per measured execution.

``{"results": [{"command", "times": [seconds], "exit_codes": [int or null], "memory_usage_byte": [bytes], ...}]}``; times are in
seconds whatever unit hyperfine prints.  Its means of user and system time are of all executions together and are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from collectors.importers.benchmark_file import BenchmarkFile, MeasuredArm, duration, number
from profiler.model.run import Metric, RunOutcome

_NS_PER_S = 1e9


def hyperfine_arms(file: BenchmarkFile) -> tuple[MeasuredArm, ...]:
    """In the file's order.  ``FormatError`` when a command has no times of single runs."""
    results = file.document.get("results")
    if not isinstance(results, list):
        raise file.error('hyperfine\'s "results" is no list')
    return tuple(_arm(file, place, result) for place, result in enumerate(results, 1))


def _arm(file: BenchmarkFile, place: int, result: object) -> MeasuredArm:
    if not isinstance(result, dict) or not isinstance(result.get("command"), str):
        raise file.error(f"result {place} names no command")
    command = result["command"]
    times = result.get("times")
    if not isinstance(times, list) or not times:
        raise file.error(f"command {place} ({command}) has no times of single runs: export again with hyperfine --export-json")
    runs = []
    for run, seconds in enumerate(times):
        value = number(seconds)
        if value is None or value < 0:
            raise file.error(f"command {place} ({command}), run {run + 1}: {seconds!r} is no time in seconds")
        metrics = (duration("wall", value * _NS_PER_S), *_memory(result, run))
        failure = _failure(result, run)
        runs.append(file.run(command, run, RunOutcome(exit_code=1 if failure else 0, failure=failure, metrics=metrics)))
    return MeasuredArm(command, tuple(runs))


def _entry(result: Mapping[str, Any], key: str, run: int, otherwise: object) -> object:
    values = result.get(key)
    return values[run] if isinstance(values, list) and run < len(values) else otherwise


def _failure(result: Mapping[str, Any], run: int) -> str:
    """hyperfine goes on after failures when it is asked to ignore them; null is a run that a signal ended."""
    code = _entry(result, "exit_codes", run, 0)
    if code is None:
        return "ended by a signal"
    return "" if code == 0 else f"exit code {code}"


def _memory(result: Mapping[str, Any], run: int) -> tuple[Metric, ...]:
    peak = number(_entry(result, "memory_usage_byte", run, None))
    return (Metric("peak memory", peak, "B", (peak,)),) if peak else ()
