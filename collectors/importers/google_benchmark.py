"""Google Benchmark's JSON (``--benchmark_format=json``, ``--benchmark_out``): every benchmark a metric, repetitions the runs.

``{"context": {"host_name", "executable", "num_cpus", ...}, "benchmarks": [{"name", "run_name", "run_type", "repetition_index",
"real_time", "cpu_time", "time_unit", "error_occurred", "error_message", ...}]}``.  Times are per iteration, in ``time_unit``
(ns unless it says otherwise).  Means, medians and the like are of type "aggregate" and are left out: they are computed here.
Every other number of an entry is a counter, of the program's own or a rate such as "bytes_per_second".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from collectors.importers.benchmark_file import BenchmarkFile, MeasuredArm, duration, number
from profiler.model.run import Metric, RunOutcome

_NS_PER_UNIT = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
# Of versions before 1.5, which do not say of what type an entry is.
_AGGREGATES = ("_mean", "_median", "_stddev", "_cv", "_BigO", "_RMS")
# Numbers that say which entry it is and how it was run.
_NO_COUNTERS = frozenset(
    {"family_index", "per_family_instance_index", "repetitions", "repetition_index", "threads", "iterations"}
    | {"real_time", "cpu_time"}
)


def google_benchmark_arms(file: BenchmarkFile) -> tuple[MeasuredArm, ...]:
    """One arm named after the program.  A benchmark that failed is a failed run of its own, so it is named and left out.

    ``FormatError`` when there are only aggregates, or a time or unit is not one.
    """
    entries = file.document.get("benchmarks")
    if not isinstance(entries, list):
        raise file.error('"benchmarks" is no list')
    by_run: dict[int, list[Metric]] = {}
    failures: list[str] = []
    seen: dict[str, int] = {}
    aggregates = 0
    for place, entry in enumerate(entries, 1):
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise file.error(f"entry {place} of benchmarks has no name")
        if _is_aggregate(entry):
            aggregates += 1
            continue
        name = entry["run_name"] if isinstance(entry.get("run_name"), str) else entry["name"]
        if failure := _failure(entry):
            failures.append(f"{name}: {failure}")
            continue
        run = seen.get(name, 0)
        seen[name] = run + 1
        by_run.setdefault(run, []).extend((*_times(file, name, entry), *_counters(name, entry)))
    if not by_run and (aggregates or not failures):
        way_out = "run it with --benchmark_repetitions and without --benchmark_report_aggregates_only"
        raise file.error(f"no single run in it, only aggregates: {way_out}")
    return (_arm(file, by_run, failures),)


def _arm(file: BenchmarkFile, by_run: Mapping[int, list[Metric]], failures: list[str]) -> MeasuredArm:
    context = file.document.get("context")
    facts = context if isinstance(context, dict) else {}
    program = facts.get("executable")
    name = program.rsplit("/", 1)[-1] if isinstance(program, str) and program else file.info.identity.variant
    host = facts.get("host_name")
    cpus = number(facts.get("num_cpus"))
    known = replace(
        file.info.host,
        hostname=host if isinstance(host, str) else "",
        cpu_count=int(cpus) if cpus is not None and 0 < cpus < 1e6 else 0,
    )
    of_host = replace(file, info=replace(file.info, host=known))
    runs = [of_host.run(name, run, RunOutcome(metrics=tuple(metrics))) for run, metrics in sorted(by_run.items())]
    runs += [
        of_host.run(name, len(by_run) + place, RunOutcome(exit_code=1, failure=failure))
        for place, failure in enumerate(failures)
    ]
    return MeasuredArm(name, tuple(runs))


def _is_aggregate(entry: Mapping[str, Any]) -> bool:
    kind = entry.get("run_type")
    if kind is None:
        return str(entry["name"]).endswith(_AGGREGATES)
    return bool(kind == "aggregate")


def _failure(entry: Mapping[str, Any]) -> str:
    if entry.get("error_occurred"):
        return str(entry.get("error_message") or "failed")
    if entry.get("skipped"):
        return f"skipped: {entry.get('skip_message') or 'no reason given'}"
    return ""


def _times(file: BenchmarkFile, name: str, entry: Mapping[str, Any]) -> tuple[Metric, ...]:
    unit = entry.get("time_unit", "ns")
    factor = _NS_PER_UNIT.get(unit) if isinstance(unit, str) else None
    if factor is None:
        raise file.error(f"{name}: time unit {unit!r} is not one of {', '.join(_NS_PER_UNIT)}")
    metrics = []
    for key, label in (("real_time", name), ("cpu_time", f"{name} (CPU)")):
        value = number(entry.get(key))
        if value is None:
            raise file.error(f"{name}: {key} {entry.get(key)!r} is no number")
        metrics.append(duration(label, value * factor))
    return tuple(metrics)


def _counters(name: str, entry: Mapping[str, Any]) -> tuple[Metric, ...]:
    """Without unit: only the program knows it."""
    values = ((key, number(value)) for key, value in entry.items() if key not in _NO_COUNTERS)
    return tuple(Metric(f"{name}: {key}", value, "", (value,)) for key, value in values if value is not None)
