"""From a program's recording to every output: totals against perf, names against the source, build IDs against readelf."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
from pathlib import Path

import jsonschema
import pytest
from rich.cells import cell_len

from profiler.cli.main import main
from support import report_schemas
from support.speedscope_rules import check_profiles

SOURCE = r"""
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
namespace sha256 {
__attribute__((noinline)) uint64_t compress_portable(uint64_t x, int rounds) {
    for (int i = 0; i < rounds; ++i) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; }
    return x;
}
}
namespace persistent_tree {
inline uint64_t get(const std::vector<uint64_t>& v, size_t i) { return v[i % v.size()] * 31; }
__attribute__((noinline)) uint64_t for_each(const std::vector<uint64_t>& v, int times) {
    uint64_t sum = 0;
    for (int t = 0; t < times; ++t)
        for (size_t i = 0; i < v.size(); ++i) sum += get(v, i + sum % 3);
    return sum;
}
}
namespace phase {
__attribute__((noinline)) uint64_t hash(int n) {
    uint64_t s = 1;
    for (int i = 0; i < n; ++i) s += sha256::compress_portable(s, 10000);
    return s;
}
}
int main(int argc, char** argv) {
    int n = atoi(argv[1]);
    std::vector<uint64_t> v(1000, 7);
    printf("%lu\n", (unsigned long)(phase::hash(4000 * n) + persistent_tree::for_each(v, 4000 * n)));
}
"""


@pytest.fixture(scope="module")
def recordings(perf: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the program and small-1, small-2, large-1, large-2 .data; large does twice the work."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("g++ is not installed")
    directory = tmp_path_factory.mktemp("recordings")
    (directory / "prog.cpp").write_text(SOURCE)
    subprocess.run([compiler, "-O2", "-g", "prog.cpp", "-o", "prog"], cwd=directory, check=True)
    for name, work in (("small", 1), ("large", 2)):
        for number in (1, 2):
            command = [perf, "record", "-N", "-q", "-e", "cpu-clock", "-F", "1999", "--call-graph", "dwarf,4096"]
            command += ["-o", f"{name}-{number}.data", "--", "./prog", str(work)]
            subprocess.run(command, cwd=directory, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    return directory


@pytest.fixture(autouse=True)
def in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def periods_by_perf(perf: str, recording: Path) -> list[int]:
    command = [perf, "script", "-F", "period", "-i", str(recording)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    return [int(line) for line in done.stdout.split()]


@pytest.mark.perf
@pytest.mark.beside
def test_report_total_is_the_sum_that_perf_prints(perf: str, recordings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording = recordings / "small-1.data"
    assert main(["report", str(recording), "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, report_schemas.REPORT)
    periods = periods_by_perf(perf, recording)
    assert document["total"] == sum(periods) == sum(row["self"] for row in document["rows"])
    assert sum(row["samples"] for row in document["rows"]) == len(periods)
    shares = {row["name"]: row["share"] for row in document["rows"]}
    assert shares["SHA-256"] + shares["tree iteration"] > 0.9


@pytest.mark.perf
@pytest.mark.beside
def test_exports_hold_the_same_total(perf: str, recordings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording = recordings / "small-1.data"
    total = sum(periods_by_perf(perf, recording))
    assert main(["export", str(recording), "-o", "x.folded"]) == 0
    assert main(["export", str(recording), "-o", "x.speedscope.json"]) == 0
    folded = [line.rsplit(" ", 1) for line in Path("x.folded").read_text().splitlines()]
    assert sum(int(weight) for _, weight in folded) == total
    assert any(re.search(r"^prog;_start;.*;main;phase::hash.*;sha256::compress_portable", stack) for stack, _ in folded)
    assert any(re.search(r";persistent_tree::for_each[^;]*;persistent_tree::get", stack) for stack, _ in folded)  # inline
    document = json.loads(Path("x.speedscope.json").read_bytes())
    check_profiles(document)
    assert document["profiles"][0]["endValue"] == total
    assert capsys.readouterr() == ("", "")


@pytest.mark.perf
@pytest.mark.beside
def test_the_source_line_of_a_function_is_in_the_profile(recordings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(recordings / "small-1.data"), "--by", "file", "--format", "csv"]) == 0
    assert re.search(r"prog\.cpp", capsys.readouterr().out)


@pytest.mark.perf
@pytest.mark.beside
def test_comparison_of_two_selections(recordings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arms = [f"small={recordings}/small-*.data", f"large={recordings}/large-*.data"]
    assert main(["compare", *arms, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, report_schemas.COMPARE)
    (candidate,) = document["candidates"]
    assert (document["baseline"], candidate["name"], candidate["runs"]) == ({"name": "small", "runs": 2}, "large", 2)
    assert 0.6 < candidate["total"]["relative"] < 1.6  # twice the work, on a machine that may be busy
    assert sum(row["delta"] for row in candidate["rows"]) == pytest.approx(candidate["total"]["delta"], rel=1e-9)
    assert main(["compare", *arms, "--format", "markdown"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("### large against small\n")
    assert "Values of each run" in shown


@pytest.mark.perf
@pytest.mark.beside
@pytest.mark.parametrize("width", [60, 100])
def test_tables_fit_the_terminal(
    recordings: Path, width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    recording = str(recordings / "small-1.data")
    for arguments in (["report", recording], ["report", recording, "--by", "function"], ["compare", recording, recording]):
        assert main(arguments) == 0
        shown = capsys.readouterr().out
        assert "\x1b" not in shown
        table = shown.split("\n\n")[1].splitlines()
        assert len(table) > 2
        assert max(cell_len(line) for line in table) <= width


@pytest.mark.perf
@pytest.mark.beside
def test_a_missing_binary_is_told_and_found_again(recordings: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = recordings / "prog"
    notes = subprocess.run(["readelf", "-n", str(program)], capture_output=True, text=True, check=True).stdout
    build_id = re.search(r"Build ID: ([0-9a-f]+)", notes)
    assert build_id is not None
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.move(program, elsewhere / "prog")
    try:
        assert main(["report", str(recordings / "small-1.data")]) == 0
        shown = capsys.readouterr().out
        assert main(["report", str(recordings / "small-1.data"), "--phase", "^phase::hash$"]) == 1
        without_phase = capsys.readouterr().err
        assert main(["report", str(recordings / "small-1.data"), "--debug-dir", str(elsewhere)]) == 0
        found_again = capsys.readouterr().out
    finally:
        shutil.move(elsewhere / "prog", program)
    warning = shown.index("WARNING: ")
    assert warning < shown.index("\ncategory ")
    assert re.search(rf"{re.escape(str(program))}\s+\(build\s+ID\s+{build_id[1]}\)", shown[warning:])
    assert "--debug-dir" in shown[warning:]
    assert f"{program} (build ID {build_id[1]}): no such file\n" in without_phase
    assert re.fullmatch(r"slotscope: error: .*no sample matches the phase.*", without_phase.splitlines()[-1])
    assert "WARNING" not in found_again
    assert "\nSHA-256 " in found_again


@pytest.mark.perf
@pytest.mark.beside
def test_explain_names_the_rule(recordings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(recordings / "small-1.data"), "--function", "compress_portable"]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert "category SHA-256" in lines
    assert any(re.match(r"because sha256::compress_portable matches ethereum\.toml:\d+: ", line) for line in lines)
    assert lines[lines.index("heaviest such stack, innermost first:") + 1].startswith("sha256::compress_portable")


@pytest.mark.perf
@pytest.mark.beside
def test_a_program_is_not_a_recording(recordings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(recordings / "prog")]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert re.fullmatch(r"slotscope: error: [^\n]*prog[^\n]*\n", shown.err)


def test_what_is_no_recording_is_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty.data").touch()
    Path("notes.txt").write_text("Meeting at nine.\nBring the numbers, all of them.\n")
    for path in (Path("notes.txt"), Path("empty.data")):
        assert main(["report", str(path)]) == 1
        shown = capsys.readouterr()
        assert re.fullmatch(rf"slotscope: error: {re.escape(str(path))}: [^\n]+\n", shown.err)


def test_every_public_recording_gives_a_document_or_one_line(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcomes: dict[int, int] = {0: 0, 1: 0, 2: 0}
    for path in public_recordings(corpus):
        code = main(["report", str(path), "--format", "json"])
        shown = capsys.readouterr()
        outcomes[code] += 1
        if code:
            assert shown.out == ""
            assert re.fullmatch(r"slotscope: error: [^\n]+\n", shown.err)
            assert path.name in shown.err
        else:
            document = json.loads(shown.out)
            jsonschema.validate(document, report_schemas.REPORT)
            assert sum(row["self"] for row in document["rows"]) == document["total"]
    assert outcomes[0] > 0
    assert outcomes[1] > 0


def public_recordings(corpus: Path) -> list[Path]:
    """Those of the index up to 1 MB, good and corrupt ones."""
    with (corpus / "INDEX.tsv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))
    stored = [corpus / row["stored"] for row in rows if row["kind"].startswith("perfdata-")]
    return [path for path in stored if path.is_file() and path.stat().st_size <= 1_000_000]
