"""A change of known place and sign is found, and nothing else; without a change nothing is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from profiler.cli.main import main
from support.workload import Variant

# Fresh recordings are a matter of chance, if a small one; `test_recorded_planted` asks the same of kept ones in every run.
pytestmark = [pytest.mark.full, pytest.mark.perf, pytest.mark.usefixtures("perf", "libc_symbols")]

Build = Callable[[Variant], Path]

# Every block is compressed twice, and hashing is a good part of the whole: to be seen on a machine that is busy otherwise.
PLANTED_PERCENT = 100
SHA256_REPEATS = "sha256=500"
# What counts as an effect, as a part of the baseline's total; the significance level alone flags one true null in twenty.
EFFECT = 0.01


@pytest.fixture
def record(tmp_path: Path) -> Callable[..., None]:
    """Records arms in turn through the command line."""

    def recorded(arms: dict[str, Path], runs: int, epochs: int) -> None:
        variants = [f"--variant={name}={program}" for name, program in arms.items()]
        options = ["--runs", str(runs), "--profile", "same", "--phase", "^phase::"]
        command = ["{binary}", "--mode", "pure", "--epochs", str(epochs), "--repeat", SHA256_REPEATS]
        assert main(["--store", str(tmp_path), "record", *variants, *options, "--", *command]) == 0

    return recorded


@pytest.fixture
def compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    """`compare --format json` of two arms that were recorded."""

    def compared(baseline: str, candidate: str, dimension: str) -> dict[str, Any]:
        capsys.readouterr()
        options = ["--by", dimension, "--format", "json", "--phase", "^phase::"]
        assert main(["--store", str(tmp_path), "compare", baseline, candidate, *options]) == 0
        result: dict[str, Any] = json.loads(capsys.readouterr().out)
        return result

    return compared


def flagged(result: dict[str, Any]) -> dict[str, str]:
    """Verdict by row, for the rows that are called faster or slower by more than EFFECT of the baseline's total."""
    (candidate,) = result["candidates"]
    limit = EFFECT * candidate["total"]["baseline"]
    return {
        row["name"]: row["verdict"]
        for row in candidate["rows"]
        if row["verdict"] in ("faster", "slower") and abs(row["delta"]) > limit
    }


@pytest.mark.parametrize(
    ("is_portable", "runs", "epochs"),
    [
        pytest.param(False, 6, 2, id="sha-ni"),
        pytest.param(True, 6, 2, id="portable"),
        pytest.param(True, 10, 4, id="portable-long"),
        pytest.param(False, 10, 4, id="sha-ni-long"),
    ],
)
def test_planted_change_is_found_where_it_is(
    record: Callable[..., None],
    compare: Callable[..., dict[str, Any]],
    workload_build: Build,
    is_portable: bool,
    runs: int,
    epochs: int,
) -> None:
    base = Variant(portable_sha256=is_portable)
    arms = {"base": workload_build(base), "planted": workload_build(replace(base, slower_hash=PLANTED_PERCENT))}
    record(arms, runs, epochs)
    assert flagged(compare("base", "planted", "category")) == {"SHA-256": "slower"}
    assert flagged(compare("planted", "base", "category")) == {"SHA-256": "faster"}
    functions = flagged(compare("base", "planted", "function"))
    assert set(functions.values()) == {"slower"}
    assert all(name.startswith("sha256::") for name in functions)
    assert any(name.startswith("sha256::compress_") for name in functions)


def test_same_program_twice_shows_nothing(
    record: Callable[..., None], compare: Callable[..., dict[str, Any]], workload_build: Build
) -> None:
    program = workload_build(Variant())
    record({"first": program, "second": program}, runs=10, epochs=4)
    assert flagged(compare("first", "second", "category")) == {}
    assert flagged(compare("first", "second", "function")) == {}
