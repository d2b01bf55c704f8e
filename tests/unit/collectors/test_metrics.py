"""Numbers out of a program's output."""

from __future__ import annotations

from pathlib import Path

import pytest

from collectors.metrics import metric_in, parse_metric, read_metrics
from profiler.errors import CaptureError, UsageError
from profiler.model.run import Metric


def metric(option: str, text: str, pick: str = "mean") -> Metric:
    return metric_in(parse_metric(option, pick), text)


@pytest.mark.parametrize(
    ("option", "text", "value", "unit"),
    [
        ("epoch=epoch: (.+)$", "epoch: 12.5 ms\n", 12_500_000.0, "ns"),
        ("epoch=regex:^took (\\S+)", "x\ntook 3s\n", 3e9, "ns"),
        ("t=took (\\d+) (us|ms)", "took 250 us", 250_000.0, "ns"),
        ("t=(?P<unit>ns|ms)=(?P<value>\\d+)", "ns=17", 17.0, "ns"),
        ("t=took (\\d+)us", "took 250us", 250.0, ""),
        ("t=took (.*)", "took 1.5µs", 1500.0, "ns"),
        ("rate=(\\d[\\d,]*) blocks", "1,234,567 blocks", 1234567.0, ""),
        ("t=took (.*)", "took 1,234.5 ms", 1234.5e6, "ns"),
        ("x=v (\\S+)", "v -1.5e-3", -0.0015, ""),
        ("x=v (\\S+)", "v .5", 0.5, ""),
        ("seconds=regex:elapsed: (.*)", "elapsed: 2 seconds", 2e9, "ns"),
    ],
)
def test_numbers_and_durations(option: str, text: str, value: float, unit: str) -> None:
    found = metric(option, text)
    assert found.value == pytest.approx(value, rel=1e-12)
    assert found.unit == unit


TEXT = "run 1: 4 ms\nrun 2: 1 ms\nrun 3: 10 ms\n"


@pytest.mark.parametrize(("pick", "value"), [("mean", 5e6), ("median", 4e6), ("last", 10e6), ("sum", 15e6)])
def test_pick_of_several_matches(pick: str, value: float) -> None:
    assert metric("t=run \\d+: (.*)$", TEXT, pick) == Metric("t", value, "ns", (4e6, 1e6, 10e6))


def test_json_lines_among_other_output() -> None:
    text = (
        'starting\n{"event": "x"}\n{"timings": {"total_ms": 2.5, "parts": [1, 7]}}\n{broken\n{"timings": {"total_ms": "a"}}\n'
    )
    assert metric("t=json:timings.total_ms", text) == Metric("t", 2.5e6, "ns", (2.5e6,))
    assert metric("p=json:timings.parts.1", text) == Metric("p", 7.0, "", (7.0,))
    with pytest.raises(CaptureError, match="matches nothing"):
        metric("p=json:timings.parts.2", text)


def test_numbers_in_json_that_no_float_holds_are_passed_over() -> None:
    text = f'{{"n": {"9" * 400}}}\n{{"n": 1e999}}\n{{"n": {"9" * 5000}}}\n{{"n": 4}}\n'
    assert metric("n=json:n", text) == Metric("n", 4.0, "", (4.0,))


@pytest.mark.parametrize(
    ("option", "text", "message"),
    [
        ("t=took (.*) ms", "nothing here", r"metric 't' \(took \(\.\*\) ms\) matches nothing in the program's output"),
        ("t=took (.*)", "took long", "'long' is not a number"),
        ("t=took (.*)", "took 3 parsecs", "unit 'parsecs' is not one of"),
        ("t=v (.*)", "v 3\nv 3 ms", "some matches have a unit of time and some have none"),
        ("t=(x)?y", "y", "None is not a number"),
        ("t=v (.*)", "v 12,5 ms", "'12,5 ms' is not a number"),
        ("t=v (.*)", "v 1,2", "'1,2' is not a number"),
        ("t=v (.*)", "v 1,23,456", "'1,23,456' is not a number"),
        ("t=v (.*)", "v 1e400", "inf is too large to be compared"),
        ("t=v (.*)", "v 1e308", "too large to be compared"),
    ],
)
def test_what_is_not_there_is_an_error(option: str, text: str, message: str) -> None:
    with pytest.raises(CaptureError, match=message):
        metric(option, text)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("epoch", "expected NAME=REGEX"),
        ("=x", "expected NAME=REGEX"),
        ("a b=(x)", "expected NAME=REGEX"),
        ("t=", "expected NAME=REGEX"),
        ("t=(", "not a regular expression"),
        ("t=took", "needs one group"),
        ("t=(a)(b)(c)", "needs one group"),
        ("t=json:", "dotted path"),
        ("t=json:a..b", "dotted path"),
        ("t=prom:http://x", "live processes"),
        ("t=stat:instructions", "live processes"),
    ],
)
def test_specifications_that_cannot_work(option: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_metric(option)
    with pytest.raises(UsageError, match="--pick 'best': expected one of mean, median, last, sum"):
        parse_metric("t=(x)", "best")


def test_output_that_is_not_utf8(tmp_path: Path) -> None:
    output = tmp_path / "output"
    output.write_bytes(b"\xff\xfe\ntook 3 ms \xf0\n")
    specs = (parse_metric("t=took (\\d+) ms"), parse_metric("u=took (\\d+ ms)"))
    assert read_metrics(specs, output) == (Metric("t", 3.0, "", (3.0,)), Metric("u", 3e6, "ns", (3e6,)))
    assert read_metrics((), tmp_path / "nothing") == ()
