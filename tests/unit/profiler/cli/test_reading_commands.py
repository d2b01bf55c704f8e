"""report, compare, export and explain over a store of small captures: the figures are the sample counts, 1 ms each."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import jsonschema
import pytest

from profiler.cli.main import main
from profiler.model.capture import Capture
from profiler.model.run import RunMode
from profiler.store.records import SessionStart
from profiler.store.store import Store, open_store
from support import report_schemas
from support.small_captures import SAMPLE_NS, small_capture, small_info
from support.speedscope_rules import check_profiles

RULES = """
[[rule]]
category = "hashing"
function = "^sha"
[[rule]]
category = "copying"
function = "^memmove$"
passthrough = true
[[rule]]
category = "tree"
function = "^tree"
[[rule]]
transparent = true
function = "^main$"
"""
RULES_OPTION = ("--rules", "rules.toml")
BASE = {"main/sha": 60, "main/tree/memmove": 25, "main/tree": 10, "main/odd": 5}


@pytest.fixture(autouse=True)
def in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rules.toml").write_text(RULES)


def record(
    arms: dict[str, list[dict[str, int]]], phase: str = "", plain: bool = True, directory: Path = Path(".slotscope")
) -> Store:
    """A session of interleaved arms; one run per entry."""
    store = open_store(directory, create=True)
    session = store.begin_session(SessionStart("2026-03-01T10:00:00+00:00", "h", ("epoch",), 1, has_rounds=True))
    for number in range(max(len(runs) for runs in arms.values())):
        for variant, runs in arms.items():
            if plain:
                store.add(small_capture({}, small_info(variant, number, RunMode.PLAIN, phase, session=session)))
            store.add(small_capture(runs[number], small_info(variant, number, phase=phase, session=session)))
        store.finish_round(session, number)
    store.finish_session(session)
    return store


def scaled(stacks: dict[str, int], sha: int) -> dict[str, int]:
    return {**stacks, "main/sha": sha}


def slotscope(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main([*arguments])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_report_table(capsys: pytest.CaptureFixture[str]) -> None:
    record({"base": [BASE]})
    code, out, err = slotscope(capsys, "report", "--rules", "rules.toml")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "base: 100.0 ms, 1 run, event cpu-clock"
    cells = {line.split()[0]: line.split()[1:4] for line in out.split("\n\n")[1].splitlines()[1:]}
    assert cells == {
        "hashing": ["60.0", "60.0", "%"], "copying": ["25.0", "25.0", "%"], "tree": ["10.0", "10.0", "%"],
        "other": ["5.0", "5.0", "%"], "total": ["100.0", "100.0", "%"],
    }  # fmt: skip
    assert "\ncopying 25.0 %: 25.0 tree\n" in out
    assert "5.0 ms  5.0 %  odd" in out
    assert "\x1b" not in out


def test_report_json(capsys: pytest.CaptureFixture[str]) -> None:
    record({"base": [BASE, scaled(BASE, 70)]})
    code, out, _ = slotscope(capsys, "report", "base", "--rules", "rules.toml", "--format", "json")
    assert code == 0
    document = json.loads(out)
    jsonschema.validate(document, report_schemas.REPORT)
    assert {row["name"]: row["self"] // SAMPLE_NS for row in document["rows"]} == {
        "hashing": 130, "copying": 50, "tree": 20, "other": 10,
    }  # fmt: skip
    assert document["total"] == 210 * SAMPLE_NS
    assert sum(row["samples"] for row in document["rows"]) == 210
    for row in document["rows"]:
        assert row["share_interval"][0] <= row["share"] <= row["share_interval"][1]


def test_report_csv_by_function_counts_self_and_total(capsys: pytest.CaptureFixture[str]) -> None:
    record({"base": [BASE]})
    code, out, _ = slotscope(capsys, "report", "--by", "function", "--format", "csv")
    assert code == 0
    rows = {
        row["name"]: (int(row["self"]) // SAMPLE_NS, int(row["total"]) // SAMPLE_NS) for row in csv.DictReader(io.StringIO(out))
    }
    assert rows == {"sha": (60, 60), "memmove": (25, 25), "tree": (10, 35), "odd": (5, 5), "main": (0, 100)}


def test_report_options_reach_the_analysis(capsys: pytest.CaptureFixture[str]) -> None:
    record({"base": [BASE]})

    def rows(*options: str) -> dict[str, int]:
        code, out, err = slotscope(capsys, "report", "--rules", "rules.toml", "--format", "json", *options)
        assert (code, err) == (0, "")
        return {row["name"]: row["self"] // SAMPLE_NS for row in json.loads(out)["rows"] if row["self"]}

    assert rows("--focus", "^tree$") == {"copying": 25, "tree": 10}
    assert rows("--ignore", "^tree$") == {"hashing": 60, "other": 5}
    assert rows("--view", "owner") == {"hashing": 60, "tree": 35, "other": 5}
    assert rows("--phase", "^tree$") == {"copying": 25, "tree": 10}
    assert rows("--limit", "1") == {"hashing": 60, "other": 5, "other rows (2)": 35}


def test_the_recorded_phase_is_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    record({"base": [BASE]}, phase="^tree$")
    code, out, _ = slotscope(capsys, "report", "--rules", "rules.toml")
    assert code == 0
    assert out.startswith("base: 35.0 ms, 1 run")
    assert "\nphase '^tree$': 35.0 ms of wall time\n" in out
    assert slotscope(capsys, "report", "--phase", "")[1].startswith("base: 100.0 ms, 1 run")


def test_a_phase_that_matches_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    record({"base": [BASE]})
    code, out, err = slotscope(capsys, "report", "--phase", "^tre$")
    assert (code, out) == (1, "")
    assert err.startswith("slotscope: error: base: no sample matches the phase '^tre$'")
    assert "tree" in err


@pytest.fixture(scope="module")
def less_hashing(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store in which cand does 100 ms less hashing than base, six rounds."""
    noise = [0, 1, -1, 2, -2, 1]
    directory = tmp_path_factory.mktemp("less-hashing") / "store"
    arms = {"base": [scaled(BASE, 600 + n) for n in noise], "cand": [scaled(BASE, 500 + n) for n in reversed(noise)]}
    record(arms, plain=False, directory=directory)
    return str(directory)


def test_compare_json(less_hashing: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = slotscope(capsys, "--store", less_hashing, "compare", "base", "cand", *RULES_OPTION, "--format", "json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    jsonschema.validate(document, report_schemas.COMPARE)
    assert document["baseline"] == {"name": "base", "runs": 6}
    (candidate,) = document["candidates"]
    assert candidate["test"] == "paired t"
    rows = {row["name"]: row for row in candidate["rows"]}
    assert rows["hashing"]["delta"] == pytest.approx(-100 * SAMPLE_NS, abs=1e-3)
    assert rows["hashing"]["verdict"] == "faster"
    assert rows["hashing"]["values"]["baseline"] == [(600 + n) * SAMPLE_NS for n in (0, 1, -1, 2, -2, 1)]
    assert candidate["total"]["delta"] == pytest.approx(-100 * SAMPLE_NS, abs=1e-3)
    assert sum(row["delta"] for row in candidate["rows"]) == pytest.approx(-100 * SAMPLE_NS, abs=1e-3)


def test_compare_table_and_markdown(less_hashing: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = slotscope(capsys, "--store", less_hashing, "compare", "base", "new=cand", *RULES_OPTION)
    assert code == 0
    assert out.startswith("new against base: total -100")
    assert "Largest change: hashing -100" in out
    code, out, _ = slotscope(
        capsys, "--store", less_hashing, "compare", "base", "new=cand", *RULES_OPTION, "--format", "markdown"
    )
    assert code == 0
    assert out.startswith("### new against base\n\n**new against base: total -100")
    assert "| hashing | 600.2 | 500.2 | -100" in out


def test_compare_csv_rows_add_up(less_hashing: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = slotscope(capsys, "--store", less_hashing, "compare", "base", "cand", *RULES_OPTION, "--format", "csv")
    lines = list(csv.DictReader(io.StringIO(out)))
    (total,) = [float(line["delta"]) for line in lines if line["kind"] == "total"]
    assert total == pytest.approx(sum(float(line["delta"]) for line in lines if line["kind"] == "row"), abs=1e-3)


@pytest.mark.parametrize(
    ("order", "limits", "code", "message"),
    [
        (("cand", "base"), ["5"], 3, "slotscope: base: total rose by at least"),
        (("cand", "base"), ["hashing:15"], 3, "slotscope: base: hashing rose by at least"),
        (("cand", "base"), ["50"], 0, ""),
        (("base", "cand"), ["5"], 0, ""),
        (("cand", "base"), ["50", "hashing:5"], 3, "slotscope: base: hashing rose by at least"),
    ],
)
def test_fail_on(
    less_hashing: str,
    order: tuple[str, str],
    limits: list[str],
    code: int,
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = [argument for limit in limits for argument in ("--fail-on", limit)]
    found, out, err = slotscope(capsys, "--store", less_hashing, "compare", *order, *RULES_OPTION, *options)
    assert found == code
    assert err.startswith(message)
    assert err.count("\n") == (1 if message else 0)
    assert "verdict" in out


def test_fail_on_a_row_that_is_not_there(less_hashing: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = slotscope(
        capsys, "--store", less_hashing, "compare", "base", "cand", *RULES_OPTION, "--fail-on", "hashin:5"
    )
    assert (code, out) == (2, "")
    assert "no row or metric 'hashin' in this comparison; nearest: hashing" in err


def test_one_run_per_arm_cannot_exceed_a_limit_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    record({"base": [BASE], "cand": [scaled(BASE, 600)]}, plain=False)
    code, out, err = slotscope(capsys, "compare", "base", "cand", "--rules", "rules.toml", "--fail-on", "5")
    assert code == 2
    assert "one run: no interval" in out
    assert "not checked" in err


def test_export_speedscope(capsys: pytest.CaptureFixture[str]) -> None:
    record({"base": [BASE], "cand": [scaled(BASE, 30)]})
    assert slotscope(capsys, "export", "base", "cand", "-o", "both.speedscope.json")[0] == 0
    document = json.loads(Path("both.speedscope.json").read_bytes())
    check_profiles(document)
    assert [profile["endValue"] for profile in document["profiles"]] == [100 * SAMPLE_NS, 70 * SAMPLE_NS]
    names = [frame["name"] for frame in document["shared"]["frames"]]
    first = document["profiles"][0]
    stacks = {
        "/".join(names[frame] for frame in sample): weight
        for sample, weight in zip(first["samples"], first["weights"], strict=True)
    }
    assert stacks == {stack: count * SAMPLE_NS for stack, count in BASE.items()}


def test_export_category_roots(capsys: pytest.CaptureFixture[str]) -> None:
    record({"base": [BASE]})
    arguments = ("export", "base", "--rules", "rules.toml", "--category-roots", "--format", "speedscope", "-o", "-")
    code, out, _ = slotscope(capsys, *arguments)
    assert code == 0
    document = json.loads(out)
    check_profiles(document)
    names = [frame["name"] for frame in document["shared"]["frames"]]
    assert {names[sample[0]] for sample in document["profiles"][0]["samples"]} == {
        "[hashing]",
        "[copying]",
        "[tree]",
        "[other]",
    }


def test_export_folded(capsys: pytest.CaptureFixture[str]) -> None:
    record({"base": [BASE, BASE]})
    assert slotscope(capsys, "export", "base", "-o", "base.folded")[0] == 0
    lines = dict(line.rsplit(" ", 1) for line in Path("base.folded").read_text().splitlines())
    assert lines == {f"epoch;{stack.replace('/', ';')}": str(2 * count * SAMPLE_NS) for stack, count in BASE.items()}


def test_export_to_a_place_that_cannot_be_written(capsys: pytest.CaptureFixture[str]) -> None:
    record({"base": [BASE]})
    code, _, err = slotscope(capsys, "export", "base", "-o", "no-such-dir/base.folded")
    assert code == 1
    assert err == "slotscope: error: no-such-dir/base.folded: cannot be written: No such file or directory\n"


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    record({"base": [BASE]})
    code, out, _ = slotscope(capsys, "explain", "--rules", "rules.toml", "--function", "memmove")
    assert code == 0
    lines = [line.strip() for line in out.splitlines()]
    assert lines[0] == "memmove: 25.0 ms, 25.0 %, 25 samples"
    assert lines[1] == "category copying, charged to tree in the owner view"
    assert lines[2].startswith("because memmove matches rules.toml:5: ")
    assert lines[-3:] == ["memmove", "tree", "main"]


def test_explain_tells_the_weight_per_run_as_the_report_does(capsys: pytest.CaptureFixture[str]) -> None:
    record({"base": [BASE, {"main/sha": 60, "main/tree/memmove": 35}]})
    _, out, _ = slotscope(capsys, "explain", "--rules", "rules.toml", "--function", "memmove")
    assert out.startswith("memmove: 30.0 ms per run, 30.8 %, 60 samples in 2 runs\n")
    _, table, _ = slotscope(capsys, "report", "--rules", "rules.toml")
    assert "\ncopying " in table
    assert next(line for line in table.splitlines() if line.startswith("copying")).split()[1:3] == ["30.0", "30.8"]


def test_explain_what_no_rule_takes(capsys: pytest.CaptureFixture[str]) -> None:
    record({"base": [BASE]})
    _, out, _ = slotscope(capsys, "explain", "--rules", "rules.toml", "--function", "^odd$")
    assert "no rule matches any frame of the stack" in out
    assert "odd: no rule matches" in out


def test_explain_an_unknown_function(capsys: pytest.CaptureFixture[str]) -> None:
    record({"base": [BASE]})
    code, out, err = slotscope(capsys, "explain", "--function", "memmov$")
    assert (code, out) == (1, "")
    assert "memmove" in err


def test_unknown_selectors(capsys: pytest.CaptureFixture[str]) -> None:
    assert slotscope(capsys, "report")[0] == 2
    assert slotscope(capsys, "report", "nothing.data")[0] == 2
    record({"base": [BASE]})
    code, _, err = slotscope(capsys, "report", "bas")
    assert code == 2
    assert "base" in err


def test_runs_without_profiles(capsys: pytest.CaptureFixture[str]) -> None:
    store = open_store(Path(".slotscope"), create=True)
    session = store.begin_session(SessionStart("2026-03-01T10:00:00+00:00", "h", ("epoch",), 1, has_rounds=True))
    store.add(small_capture({}, small_info("base", 0, RunMode.PLAIN, session=session)))
    store.finish_round(session, 0)
    code, _, err = slotscope(capsys, "report", "base")
    assert code == 2
    why = "which was cut short or made with `--profile none`: record again, or name another session"
    assert err == f"slotscope: error: base: no profile in its 1 run of session {session}, {why}\n"


def test_runs_that_all_failed(capsys: pytest.CaptureFixture[str]) -> None:
    store = open_store(Path(".slotscope"), create=True)
    session = store.begin_session(SessionStart("2026-03-01T10:00:00+00:00", "h", ("epoch",), 1, has_rounds=True))
    failed: Capture = small_capture(BASE, small_info("base", 0, failure="exit code 7", session=session))
    store.add(failed)
    store.finish_round(session, 0)
    code, _, err = slotscope(capsys, "report", "base")
    assert code == 2
    assert "exit code 7" in err


def test_plain_runs_that_all_failed(capsys: pytest.CaptureFixture[str]) -> None:
    store = open_store(Path(".slotscope"), create=True)
    session = store.begin_session(SessionStart("2026-03-01T10:00:00+00:00", "h", ("epoch",), 1, has_rounds=True))
    store.add(small_capture({}, small_info("base", 0, RunMode.PLAIN, failure="metric 'x' matches nothing", session=session)))
    code, _, err = slotscope(capsys, "report", "base")
    assert code == 2
    assert err == "slotscope: error: base: every run failed (metric 'x' matches nothing); `slotscope show` tells more\n"


def test_arms_recorded_for_different_phases(capsys: pytest.CaptureFixture[str]) -> None:
    store = open_store(Path(".slotscope"), create=True)
    session = store.begin_session(SessionStart("2026-03-01T10:00:00+00:00", "h", ("epoch",), 1, has_rounds=True))
    for variant, phase in (("base", "^tree$"), ("cand", "^sha$")):
        store.add(small_capture(BASE, small_info(variant, 0, phase=phase, session=session)))
    store.finish_round(session, 0)
    code, _, err = slotscope(capsys, "compare", "base", "cand")
    assert code == 2
    assert "recorded for different phases, '^sha$' and '^tree$': choose with --phase" in err
    assert slotscope(capsys, "compare", "base", "cand", "--phase", "")[0] == 0


def test_a_debug_directory_that_does_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = slotscope(capsys, "report", "base", "--debug-dir", "nowhere")
    assert (code, err) == (2, "slotscope: error: --debug-dir nowhere: no such directory\n")
