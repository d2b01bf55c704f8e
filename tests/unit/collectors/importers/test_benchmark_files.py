"""Results of hyperfine and Google Benchmark: texts written by hand after their documentation, and hyperfine itself."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from collectors.recording_file import read_arms, read_runs
from profiler.errors import FormatError, UsageError
from profiler.model.capture import Capture
from profiler.model.run import RunMode
from symbolize.locate import Locator, SearchPaths

LOCATOR = Locator(SearchPaths())


def written(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document, indent=2))
    return path


def hyperfine(command: str, times: list[float], **more: Any) -> dict[str, Any]:
    return {"command": command, "mean": 1.0, "user": 0.5, "system": 0.1, "times": times, **more}


def values(captures: tuple[Capture, ...], name: str) -> list[float]:
    return [metric.value for capture in captures for metric in capture.info.outcome.metrics if metric.name == name]


def test_each_command_of_hyperfine_is_an_arm_and_each_time_a_run(tmp_path: Path) -> None:
    two = [hyperfine("./a --fast", [0.5, 0.25]), hyperfine("./b", [1.0, 2.0, 3.0], memory_usage_byte=[100, 200, 300])]
    path = written(tmp_path / "h.json", {"results": two})
    first, second = read_runs(path, LOCATOR, part="1"), read_runs(path, LOCATOR, part="./b")
    assert values(first, "wall") == [5e8, 2.5e8]
    assert values(second, "wall") == [1e9, 2e9, 3e9]
    assert values(second, "peak memory") == [100, 200, 300]
    assert {capture.info.identity.mode for capture in (*first, *second)} == {RunMode.PLAIN}
    assert {capture.info.source for capture in first} == {str(path)}
    assert [capture.info.identity.variant for capture in read_arms(path, LOCATOR)] == ["./a --fast"] * 2 + ["./b"] * 3


@pytest.mark.parametrize("part", ["", "3", "./c"])
def test_a_command_must_be_named_where_there_are_several(tmp_path: Path, part: str) -> None:
    path = written(tmp_path / "h.json", {"results": [hyperfine("./a", [1.0]), hyperfine("./b", [1.0])]})
    with pytest.raises(UsageError, match=r"h\.json#1 is \./a; .*h\.json#2 is \./b"):
        read_runs(path, LOCATOR, part=part)


def test_executions_that_failed_are_kept_with_the_reason(tmp_path: Path) -> None:
    result = hyperfine("./a", [1.0, 1.1, 1.2], exit_codes=[0, 3, None])
    runs = read_runs(written(tmp_path / "h.json", {"results": [result]}), LOCATOR)
    assert [run.info.outcome.failure for run in runs] == ["", "exit code 3", "ended by a signal"]


BAD_HYPERFINE = {
    '{"results": [{"command": "a", "times": [1.0': "not valid JSON",
    '{"results": {"command": 1}}': "no list",
    '{"results": [{"command": "a", "mean": 1.0}]}': "no times of single runs",
    '{"results": [{"command": "a", "times": ["x"]}]}': "'x' is no time",
    '{"results": [{"command": "a", "times": [-1]}]}': "is no time",
    '{"results": [{"command": "a", "times": [NaN]}]}': "is no time",
    '{"results": [3], "command": 1}': "names no command",
    '{"results": [], "command": 1}': "no run of any benchmark",
    '{"context": {}, "benchmarks": 3}': "no list",
    '{"context": {}, "benchmarks": [3]}': "has no name",
    '{"context": {}, "benchmarks": []}': "only aggregates",
    '{"context": {}, "benchmarks": [{"name": "a", "real_time": 1, "cpu_time": 1, "time_unit": "h"}]}': "time unit 'h'",
    '{"context": {}, "benchmarks": [{"name": "a", "real_time": 1, "time_unit": "ns"}]}': "cpu_time None is no number",
    '{"context": {}, "benchmarks": [{"name": "a_mean", "run_type": "aggregate", "real_time": 1}]}': "aggregates_only",
}


@pytest.mark.parametrize("text", BAD_HYPERFINE)
def test_what_is_damaged_is_one_line_with_the_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(FormatError, match=BAD_HYPERFINE[text]) as caught:
        read_runs(path, LOCATOR)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def google(name: str, real: float, unit: str = "ns", **more: Any) -> dict[str, Any]:
    return {"name": name, "run_name": name, "run_type": "iteration", "real_time": real, "cpu_time": real / 2,
            "time_unit": unit, "iterations": 100, **more}  # fmt: skip


CONTEXT = {"date": "2026-01-01T00:00:00+00:00", "host_name": "box", "executable": "./build/bench", "num_cpus": 8}


def test_repetitions_of_google_benchmark_are_runs_and_benchmarks_metrics(tmp_path: Path) -> None:
    entries = [
        google("BM_a/8", 10.0, repetition_index=0), google("BM_a/8", 12.0, repetition_index=1),
        google("BM_a/8_mean", 11.0, run_type="aggregate", aggregate_name="mean"),
        google("BM_b", 1.5, "us"), google("BM_b", 1.25, "us"),
        google("BM_c", 2.0, "ms", error_occurred=True, error_message="no device"),
        google("BM_d", 2.0, "s"),
    ]  # fmt: skip
    runs = read_runs(written(tmp_path / "g.json", {"context": CONTEXT, "benchmarks": entries}), LOCATOR)
    assert values(runs, "BM_a/8") == [10.0, 12.0]
    assert values(runs, "BM_a/8 (CPU)") == [5.0, 6.0]
    assert values(runs, "BM_b") == [1500.0, 1250.0]
    assert values(runs, "BM_d") == [2e9]
    assert [run.info.outcome.failure for run in runs] == ["", "", "BM_c: no device"]
    assert {(run.info.identity.variant, run.info.host.hostname, run.info.host.cpu_count) for run in runs} == {
        ("bench", "box", 8)
    }


def test_old_versions_do_not_say_what_is_an_aggregate(tmp_path: Path) -> None:
    entries = [{"name": "BM_a", "real_time": 7, "cpu_time": 6}, {"name": "BM_a_stddev", "real_time": 1, "cpu_time": 1}]
    runs = read_runs(written(tmp_path / "g.json", {"context": {}, "benchmarks": entries}), LOCATOR)
    assert (values(runs, "BM_a"), values(runs, "BM_a_stddev")) == ([7.0], [])


def test_other_files_have_no_parts(tmp_path: Path) -> None:
    folded = tmp_path / "x.folded"
    folded.write_text("a;b 3\na;c 4\n")
    assert len(read_runs(folded, LOCATOR)) == 1
    with pytest.raises(UsageError, match="no part '1'"):
        read_runs(folded, LOCATOR, part="1")


@pytest.mark.skipif(shutil.which("hyperfine") is None, reason="hyperfine is not installed")
def test_what_hyperfine_writes(tmp_path: Path) -> None:
    path = tmp_path / "real.json"
    subprocess.run(
        ["hyperfine", "-N", "--runs", "3", "--export-json", str(path), "true", "sleep 0.02"], check=True, capture_output=True
    )
    runs = read_runs(path, LOCATOR, part="2")
    assert len(runs) == 3
    assert min(values(runs, "wall")) >= 20e6
    assert values(runs, "wall") == [1e9 * seconds for seconds in json.loads(path.read_text())["results"][1]["times"]]


@pytest.mark.skipif(shutil.which("hyperfine") is None, reason="hyperfine is not installed")
def test_what_hyperfine_writes_of_runs_that_fail(tmp_path: Path) -> None:
    path = tmp_path / "real.json"
    options = ["-N", "--ignore-failure", "--runs", "2", "--parameter-list", "code", "0,3", "--export-json", str(path)]
    subprocess.run(["hyperfine", *options, "sh -c 'exit {code}'"], check=True, capture_output=True)
    arms = read_arms(path, LOCATOR)
    assert [(capture.info.identity.variant, capture.info.outcome.failure) for capture in arms] == [
        ("sh -c 'exit 0'", ""), ("sh -c 'exit 0'", ""), ("sh -c 'exit 3'", "exit code 3"), ("sh -c 'exit 3'", "exit code 3")
    ]  # fmt: skip
