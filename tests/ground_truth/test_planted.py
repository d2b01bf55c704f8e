"""A change of known place and sign is found, and nothing else; without a change nothing is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.workload import Variant

from profiler.cli.main import main

pytestmark = [pytest.mark.perf, pytest.mark.usefixtures("perf")]

Build = Callable[[Variant], Path]

BASE = Variant()
# What counts as an effect, as a part of the baseline's total; the significance level alone flags one true null in twenty.
EFFECT = 0.01


@pytest.fixture
def compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    """Records arms through the command line and gives `compare --format json` of the two, by the dimension asked for."""
    store = str(tmp_path / "store")

    def record(arms: dict[str, Path], runs: int, epochs: int) -> None:
        variants = [f"--variant={name}={program}" for name, program in arms.items()]
        options = ["--runs", str(runs), "--profile", "same", "--phase", "^phase::"]
        command = ["{binary}", "--mode", "pure", "--epochs", str(epochs)]
        assert main(["--store", store, "record", *variants, *options, "--", *command]) == 0

    def compared(arms: dict[str, Path], runs: int, epochs: int, dimensions: tuple[str, ...]) -> dict[str, Any]:
        record(arms, runs, epochs)
        capsys.readouterr()
        results = {}
        for dimension in dimensions:
            options = ["--by", dimension, "--format", "json", "--phase", "^phase::"]
            assert main(["--store", store, "compare", *arms, *options]) == 0
            results[dimension] = json.loads(capsys.readouterr().out)
        return results

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
    ("runs", "epochs", "percent"),
    [(6, 2, 60), pytest.param(10, 4, 25, marks=pytest.mark.full), pytest.param(10, 4, 60, marks=pytest.mark.full)],
)
@pytest.mark.parametrize("is_portable", [True, False], ids=["portable", "sha-ni"])
def test_planted_change_is_found_where_it_is(
    compare: Callable[..., Any], workload_build: Build, runs: int, epochs: int, percent: int, is_portable: bool
) -> None:
    arms = {
        "base": workload_build(Variant(portable_sha256=is_portable)),
        "planted": workload_build(Variant(portable_sha256=is_portable, slower_hash=percent)),
    }
    results = compare(arms, runs, epochs, ("category", "function"))
    assert flagged(results["category"]) == {"SHA-256": "slower"}
    functions = flagged(results["function"])
    assert set(functions.values()) == {"slower"}
    assert all(name.startswith("sha256::") for name in functions)
    assert any(name.startswith("sha256::compress_") for name in functions)


def test_planted_change_has_the_other_sign_the_other_way_round(compare: Callable[..., Any], workload_build: Build) -> None:
    arms = {"slow": workload_build(Variant(slower_hash=60)), "base": workload_build(BASE)}
    assert flagged(compare(arms, 6, 2, ("category",))["category"]) == {"SHA-256": "faster"}


@pytest.mark.full
def test_same_program_twice_shows_nothing(compare: Callable[..., Any], workload_build: Build) -> None:
    program = workload_build(BASE)
    results = compare({"first": program, "second": program}, 10, 4, ("category", "function"))
    assert flagged(results["category"]) == {}
    assert flagged(results["function"]) == {}
