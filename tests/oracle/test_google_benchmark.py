"""What Google Benchmark itself writes, read; its own means, and times that the benchmark states, are what is compared with."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from collectors.recording_file import read_runs
from profiler.errors import FormatError
from profiler.model.capture import Capture
from symbolize.locate import Locator, SearchPaths

LOCATOR = Locator(SearchPaths())
REPETITIONS = 3
SOURCE = """
#include <benchmark/benchmark.h>
static void stated(benchmark::State& state) {
    for (auto _ : state) state.SetIterationTime(0.002);
    state.counters["size"] = static_cast<double>(state.range(0));
    state.SetItemsProcessed(state.iterations() * 10);
    state.SetComplexityN(state.range(0));
    state.SetLabel("a label");
}
BENCHMARK(stated)->Name("in_ns")->Arg(8)->UseManualTime()->Iterations(4);
BENCHMARK(stated)->Name("in_us")->Arg(8)->UseManualTime()->Iterations(4)->Unit(benchmark::kMicrosecond);
BENCHMARK(stated)->Name("in_ms")->Arg(8)->UseManualTime()->Iterations(4)->Unit(benchmark::kMillisecond);
BENCHMARK(stated)->Name("in_s")->Arg(8)->UseManualTime()->Iterations(4)->Unit(benchmark::kSecond);
BENCHMARK(stated)->Name("order")->Arg(8)->Arg(64)->UseManualTime()->Iterations(4)->Complexity(benchmark::oN);
static void spinning(benchmark::State& state) {
    for (auto _ : state) for (int i = 0; i < 1000; i++) benchmark::DoNotOptimize(i);
}
BENCHMARK(spinning)->Iterations(50);
BENCHMARK(spinning)->Name("threads")->Threads(2)->Iterations(50);
static void broken(benchmark::State& state) {
    state.SkipWithError("no device");
    for (auto _ : state) break;
}
BENCHMARK(broken);
BENCHMARK_MAIN();
"""
STATED = {
    "in_ns/8/iterations:4/manual_time",
    "in_us/8/iterations:4/manual_time",
    "in_ms/8/iterations:4/manual_time",
    "in_s/8/iterations:4/manual_time",
    "order/8/iterations:4/manual_time",
    "order/64/iterations:4/manual_time",
}
SPUN = {"spinning/iterations:50", "threads/iterations:50/threads:2"}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("google")
    (directory / "bench.cpp").write_text(SOURCE)
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    command = ["g++", "-O1", "bench.cpp", "-o", "bench", "-lbenchmark", "-lpthread"]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if "benchmark/benchmark.h: No such file" in done.stderr:
        pytest.skip("Google Benchmark is not installed: libbenchmark-dev (Debian, Ubuntu), google-benchmark-devel (Fedora)")
    assert done.returncode == 0, done.stderr
    return directory / "bench"


def written(program: Path, *options: str) -> Path:
    path = program.with_suffix(".json")
    subprocess.run([program, f"--benchmark_out={path}", *options], capture_output=True, check=True)
    return path


def entries(path: Path) -> list[dict[str, Any]]:
    return list(json.loads(path.read_text())["benchmarks"])


def values(runs: Sequence[Capture], name: str) -> list[float]:
    return [metric.value for run in runs for metric in run.info.outcome.metrics if metric.name == name]


def names(runs: Sequence[Capture]) -> set[str]:
    return {metric.name for run in runs for metric in run.info.outcome.metrics}


def test_repetitions_are_runs_and_have_the_means_that_it_computes(program: Path) -> None:
    path = written(program, f"--benchmark_repetitions={REPETITIONS}")
    runs = read_runs(path, LOCATOR)
    assert [run.info.outcome.failure for run in runs] == [""] * REPETITIONS + ["broken: no device"] * REPETITIONS
    for name in STATED:
        assert values(runs, name) == pytest.approx([2e6] * REPETITIONS), "2 ms an iteration, in whatever unit"
    per_unit = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
    means = {entry["run_name"]: entry for entry in entries(path) if entry.get("aggregate_name") == "mean"}
    assert means.keys() == STATED | SPUN
    for name, mean in means.items():
        for key, metric in (("real_time", name), ("cpu_time", f"{name} (CPU)")):
            found = values(runs, metric)
            assert len(found) == REPETITIONS
            assert sum(found) / REPETITIONS == pytest.approx(mean[key] * per_unit[mean["time_unit"]])
    timed = STATED | SPUN | {f"{name} (CPU)" for name in STATED | SPUN}
    assert names(runs) == timed | {f"{name}: {counter}" for name in STATED for counter in ("size", "items_per_second")}


def test_counters_are_metrics_without_unit(program: Path) -> None:
    runs = read_runs(written(program), LOCATOR)
    assert len([run for run in runs if not run.info.outcome.failure]) == 1
    assert values(runs, "order/64/iterations:4/manual_time: size") == [64]
    (rate,) = values(runs, "in_s/8/iterations:4/manual_time: items_per_second")
    assert rate == pytest.approx(10 / 0.002)
    units = {metric.name: metric.unit for run in runs for metric in run.info.outcome.metrics}
    assert {unit for name, unit in units.items() if ": " in name} == {""}
    assert {unit for name, unit in units.items() if ": " not in name} == {"ns"}


def test_aggregates_alone_are_refused_whatever_else_failed(program: Path) -> None:
    path = written(program, f"--benchmark_repetitions={REPETITIONS}", "--benchmark_report_aggregates_only=true")
    with pytest.raises(FormatError, match="only aggregates: run it with --benchmark_repetitions and without"):
        read_runs(path, LOCATOR)


def test_interleaved_repetitions(program: Path) -> None:
    options = (f"--benchmark_repetitions={REPETITIONS}", "--benchmark_enable_random_interleaving=true")
    path = written(program, *options, "--benchmark_filter=in_|spinning")
    runs = read_runs(path, LOCATOR)
    for entry in entries(path):
        if entry["run_type"] == "iteration" and entry["run_name"] == "spinning/iterations:50":
            assert values(runs, "spinning/iterations:50")[entry["repetition_index"]] == pytest.approx(entry["real_time"])


def test_a_program_that_dies_leaves_half_a_file(program: Path) -> None:
    path = written(program, "--benchmark_filter=in_ns")
    path.write_text(path.read_text()[:-40])
    with pytest.raises(FormatError, match=r"not valid JSON .*the benchmark may have been cut short"):
        read_runs(path, LOCATOR)
