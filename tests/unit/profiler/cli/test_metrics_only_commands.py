"""compare and import over runs without a profile, and comparisons by way of a third build."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from profiler.cli.main import main
from profiler.model.run import Metric, RunMode
from profiler.store.records import SessionStart
from profiler.store.store import open_store
from support import report_schemas
from support.small_captures import SAMPLE_NS, small_capture, small_info

BASE, SAME = (100, 102, 99, 101), (80, 81, 79, 80)


@pytest.fixture(autouse=True)
def in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def record(hour: int, arms: dict[str, tuple[int, ...]], profiled: bool = True) -> str:
    """A session whose runs have so many samples of 1 ms, and a metric "epoch" of twice that."""
    store = open_store(Path(".slotscope"), create=True)
    start = SessionStart(f"2026-03-01T{hour:02d}:00:00+00:00", "h", ("epoch",), 1, has_rounds=True)
    session = store.begin_session(start)
    for number in range(len(next(iter(arms.values())))):
        for variant, counts in arms.items():
            plain = small_info(variant, number, RunMode.PLAIN, session=session)
            metric = Metric("epoch", 2.0 * SAMPLE_NS * counts[number], "ns")
            store.add(small_capture({}, replace(plain, outcome=replace(plain.outcome, metrics=(metric,)))))
            if profiled:
                store.add(small_capture({"main/sha": counts[number]}, small_info(variant, number, session=session)))
        store.finish_round(session, number)
    store.finish_session(session)
    return session


def slotscope(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main([*arguments])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


@pytest.fixture
def two_sessions() -> tuple[str, str]:
    """default to thin is x0.8, thin to fat x0.5; default and fat were never measured together."""
    first = record(10, {"default": BASE, "thin": SAME})
    second = record(11, {"thin": (200, 204, 198, 202), "fat": (100, 101, 99, 102)})
    return first, second


def test_composed_by_one_name(capsys: pytest.CaptureFixture[str], two_sessions: tuple[str, str]) -> None:
    first, second = two_sessions
    code, out, _ = slotscope(capsys, "compare", "default", "fat", "--via", "thin", "--format", "json")
    assert code == 0
    document = json.loads(out)
    assert document["schema"] == "slotscope.composed/1"
    assert (document["baseline"], document["via"], document["candidate"]) == ("default", "thin", "fat")
    expected = (sum(SAME) / sum(BASE)) * (402 / 804)
    for row in (document["total"], next(metric for metric in document["metrics"] if metric["name"] == "epoch")):
        assert row["first_ratio"] == pytest.approx(sum(SAME) / sum(BASE))
        assert row["second_ratio"] == pytest.approx(402 / 804)
        assert row["composed"]["ratio"] == pytest.approx(expected)
        low, high = row["composed"]["ratio_interval"]
        assert low < expected < high
        assert row["composed"]["verdict"] == "faster"
    given = slotscope(
        capsys, "compare", "default", "fat", "--via", f"{first}/thin", "--via", f"{second}/thin", "--format", "csv"
    )
    totals = [row for row in csv.DictReader(io.StringIO(given[1])) if row["kind"] == "total"]
    assert float(totals[0]["composed_ratio"]) == pytest.approx(expected)


@pytest.mark.parametrize("format", ["table", "markdown", "csv", "json"])
def test_times_and_metrics_are_composed_without_a_profile(capsys: pytest.CaptureFixture[str], format: str) -> None:
    record(10, {"default": BASE, "thin": SAME}, profiled=False)
    record(11, {"thin": (200, 204, 198, 202), "fat": (100, 101, 99, 102)}, profiled=False)
    code, out, _ = slotscope(capsys, "compare", "default", "fat", "--via", "thin", "--format", format)
    assert code == 0
    if format == "json":
        document = json.loads(out)
        assert (document["rows"], document["total"]) == ([], None)
        epoch = next(metric for metric in document["metrics"] if metric["name"] == "epoch")
        assert epoch["composed"]["ratio"] == pytest.approx((sum(SAME) / sum(BASE)) * (402 / 804))
    else:
        assert "epoch" in out
        assert "total" not in out


@pytest.mark.parametrize("format", ["table", "markdown"])
def test_every_composed_cell_is_marked(capsys: pytest.CaptureFixture[str], two_sessions: object, format: str) -> None:
    code, out, _ = slotscope(capsys, "compare", "default", "fat", "--via", "thin", "--format", format)
    assert code == 0
    line = next(line for line in out.splitlines() if line.lstrip("| ").startswith("total"))
    assert line.count("*") == 4
    assert "composed: no run shows it" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("default", "thin", "--via", "fat"), "session"),
        (("default", "fat", "--via", "none"), "none"),
        (("default", "fat", "thin", "--via", "thin"), "name one candidate"),
        (("default", "fat", "--via", "thin", "--fail-on", "3"), "--fail-on needs a comparison that was run"),
        (("default", "fat", "--via", "a", "--via", "b", "--via", "c"), "twice"),
        (("default", "fat", "--via", "thin", "--metric", "nosuch"), "no metric or time 'nosuch'"),
    ],
)
def test_what_cannot_be_composed(
    capsys: pytest.CaptureFixture[str], two_sessions: object, arguments: tuple[str, ...], message: str
) -> None:
    code, out, err = slotscope(capsys, "compare", *arguments)
    assert (code, out) == (2, "")
    assert message in err


def test_builds_of_one_session_are_compared_and_not_composed(capsys: pytest.CaptureFixture[str]) -> None:
    record(10, {"a": BASE, "b": SAME, "c": SAME})
    code, _, err = slotscope(capsys, "compare", "a", "b", "--via", "c")
    assert code == 2
    assert "measured together" in err


@pytest.mark.parametrize("format", ["table", "markdown", "csv", "json"])
def test_compare_per_unit_of_work(capsys: pytest.CaptureFixture[str], format: str) -> None:
    record(10, {"a": BASE, "b": SAME})
    code, out, _ = slotscope(capsys, "compare", "a", "b", "--per", "4", "--format", format)
    assert code == 0
    if format == "json":
        document = json.loads(out)
        jsonschema.validate(document, report_schemas.COMPARE)
        assert document["per"] == 4
        assert document["candidates"][0]["total"]["baseline"] == pytest.approx(sum(BASE) / 4 / 4 * SAMPLE_NS)
        epoch = next(metric for metric in document["candidates"][0]["metrics"] if metric["name"] == "epoch")
        assert epoch["baseline"] == pytest.approx(2 * sum(BASE) / 4 * SAMPLE_NS)  # the program's own number stays
    elif format == "csv":
        total = next(row for row in csv.DictReader(io.StringIO(out)) if row["kind"] == "total")
        assert float(total["candidate"]) == pytest.approx(sum(SAME) / 4 / 4 * SAMPLE_NS)
    else:
        assert "per unit of work, 4 of which are in a run" in out


@pytest.mark.parametrize("units", ["0", "-1", "x", "nan", "inf"])
def test_per_must_be_a_number_above_0(capsys: pytest.CaptureFixture[str], units: str) -> None:
    assert slotscope(capsys, "compare", "a", "b", f"--per={units}")[0] == 2


@pytest.mark.parametrize("format", ["table", "markdown", "csv", "json"])
def test_arms_without_a_profile_have_times_and_metrics(capsys: pytest.CaptureFixture[str], format: str) -> None:
    record(10, {"a": BASE, "b": SAME}, profiled=False)
    code, out, _ = slotscope(capsys, "compare", "a", "b", "--format", format, "--metric", "epoch")
    assert code == 0
    assert "epoch" in out
    assert "faster" in out
    code, _, err = slotscope(capsys, "report", "a")
    assert code == 2
    assert "--profile none" in err


def test_runs_without_a_profile_that_were_measured_apart(capsys: pytest.CaptureFixture[str]) -> None:
    record(10, {"a": BASE}, profiled=False)
    record(11, {"b": SAME}, profiled=False)
    _, out, _ = slotscope(capsys, "compare", "a", "b", "--format", "json")
    assert [warning["code"] for warning in json.loads(out)["warnings"]].count("recorded-apart") == 1
    assert json.loads(out)["candidates"][0]["test"] == "Welch t"


def test_limits_for_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    record(10, {"a": SAME, "b": BASE}, profiled=False)
    for name, code in (("epoch:5", 3), ("metric:epoch:5", 3), ("epoch:90", 0), ("5", 2)):
        assert slotscope(capsys, "compare", "a", "b", "--fail-on", name)[0] == code


def hyperfine(path: str, **commands: list[float]) -> None:
    results = [{"command": command, "mean": 1.0, "times": times} for command, times in commands.items()]
    Path(path).write_text(json.dumps({"results": results}))


def test_files_of_hyperfine_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    hyperfine("h.json", old=[1.0, 1.01, 0.99, 1.0], new=[0.8, 0.81, 0.79, 0.8])
    code, out, _ = slotscope(capsys, "compare", "base=h.json#1", "h.json#new", "--format", "json")
    assert code == 0
    candidate = json.loads(out)["candidates"][0]
    assert candidate["name"] == "h.json#new"
    wall = next(metric for metric in candidate["metrics"] if metric["name"] == "wall")
    assert wall["relative"] == pytest.approx(-0.2)
    assert wall["verdict"] == "faster"
    assert [metric["name"] for metric in candidate["metrics"]] == ["wall"]
    assert [warning["code"] for warning in json.loads(out)["warnings"]] == ["recorded-apart"]


def test_import_keeps_files_in_one_session(capsys: pytest.CaptureFixture[str]) -> None:
    hyperfine("h.json", old=[1.0, 1.01, 0.99], new=[0.8, 0.81, 0.79])
    Path("a.folded").write_text("main;sha 60\nmain;tree 40\n")
    code, out, _ = slotscope(capsys, "import", "h.json", "a.folded", "other=a.folded")
    assert code == 0
    assert "8 runs of 4 variants" in out
    session = out.split()[1].rstrip(":")
    code, out, _ = slotscope(capsys, "compare", f"{session}/old", f"{session}/new", "--format", "json")
    assert code == 0
    assert json.loads(out)["candidates"][0]["test"] == "Welch t"
    code, out, _ = slotscope(capsys, "report", f"{session}/a", "--by", "function", "--format", "json")
    assert code == 0
    assert {row["name"]: row["self"] for row in json.loads(out)["rows"]} == {"sha": 60, "tree": 40, "main": 0}


def test_import_under_one_name(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.folded").write_text("main;sha 60\n")
    Path("b.folded").write_text("main;sha 66\n")
    code, out, _ = slotscope(capsys, "import", "a.folded", "b.folded", "--variant", "base")
    assert code == 0
    assert "2 runs of 1 variant" in out
    assert slotscope(capsys, "report", "base")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("nosuch.data",), 2, "nosuch.data"),
        (("bad.data",), 1, "bad.data"),
        (("a.folded", "bad.data"), 1, "bad.data"),
        (("a.folded", "--variant", "a b"), 2, "variant name 'a b'"),
        (("h.json", "--variant", "x"), 2, "h.json#1"),
    ],
)
def test_what_cannot_be_imported_leaves_no_session(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int, message: str
) -> None:
    hyperfine("h.json", old=[1.0], new=[0.8])
    Path("a.folded").write_text("main;sha 60\n")
    Path("bad.data").write_bytes(b"\x00\x01\x02")
    found, out, err = slotscope(capsys, "import", *arguments)
    assert (found, out) == (code, "")
    assert message in err
    if Path(".slotscope").exists():
        assert open_store(Path(".slotscope"), create=False).sessions() == ()
