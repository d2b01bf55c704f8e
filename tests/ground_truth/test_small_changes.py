"""Whole experiments on the epoch workload: nothing is found between equal arms, and a change of 5 or 10 % in one function is.

The program's own phase timers, CPU ns in its output of the plain runs, are metrics of the experiment; profiles come from other
runs.  Both estimate one difference, so that they agree within their joint interval.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from profiler.cli.main import main
from support.workload import Variant

pytestmark = [pytest.mark.full, pytest.mark.perf, pytest.mark.usefixtures("perf", "libc_symbols")]

Build = Callable[[Variant], Path]
Row = dict[str, Any]

PHASE_OF_CATEGORY = {
    "tree iteration": "iterate",
    "tree update": "update",
    "tree hashing": "hash",
    "SHA-256": "sha256",
    "shuffling": "shuffle",
    "memmove": "copy",
    "malloc": "allocate",
    "epoch processing": "epoch",
}
EQUAL_EXPERIMENTS = 20
# Of 20 experiments with a family-wise error of 5 %, more than four have a flagged row in 0.3 % of all cases.
FLAGGED_AT_MOST = 4
# Some 40 pairs of estimates are held against each other: the interval of each is that of 1 - 0.05 / 40 instead of 95 %.
AGREEMENT = 3.23 / 1.96
PLANTED_FUNCTION = "sha256::compress_shani"


def plan_of(arms: dict[str, Path], settings: str, epoch_options: str) -> str:
    """A plan whose metrics are the program's timers: the unit stands in the name, before the number."""
    timers = "".join(
        f"""
        [[metric]]
        name = "{phase}"
        regex = '"phase": "{phase}".*"cpu_(?P<unit>ns)": (?P<value>\\d+)[,}}]'
        """
        for phase in PHASE_OF_CATEGORY.values()
    )
    variants = "".join(f'\n[[variant]]\nname = "{name}"\nbinary = "{program}"' for name, program in arms.items())
    words = ", ".join(f'"{word}"' for word in ("{binary}", "--mode", "pure", *epoch_options.split()))
    return f"""
        [experiment]
        name = "small-changes"
        {settings}
        frequency = 4999
        phase = "^phase::"
        retries = 0
        command = [{words}]
        [[metric]]
        name = "total"
        regex = '"phase": "total", "cpu_(?P<unit>ns)": (?P<value>\\d+)'
        {timers}
        {variants}
        """


def condition_of(folder: Path, plan: str, capsys: pytest.CaptureFixture[str], dimension: str = "category") -> Row:
    """Runs the plan unless its store is there, and returns the one condition of `experiment show --format json`."""
    store = folder / "store"
    if not store.exists():
        (folder / "plan.toml").write_text(plan)
        assert main(["--store", str(store), "experiment", "run", str(folder / "plan.toml")]) == 0
    capsys.readouterr()
    assert main(["--store", str(store), "experiment", "show", "--by", dimension, "--format", "json"]) == 0
    (condition,) = json.loads(capsys.readouterr().out)["conditions"]
    assert isinstance(condition, dict)
    return condition


def flagged(rows: list[Row]) -> dict[str, str]:
    return {row["name"]: row["verdict"] for row in rows if row["verdict"] in ("faster", "slower")}


def by_name(rows: list[Row]) -> dict[str, Row]:
    return {row["name"]: row for row in rows}


def half_width(row: Row) -> float:
    low, high = row["delta_interval"]
    return float(high - low) / 2


def agree(profile: Row, timer: Row, slowdown: float) -> bool:
    """Two independent estimates of one difference with 95 % intervals: variances add.  ``slowdown``: of the program under perf,
    by which the profile's numbers are larger."""
    apart = abs(profile["delta"] / slowdown - timer["delta"])
    return apart <= AGREEMENT * math.hypot(half_width(profile) / slowdown, half_width(timer))


def test_equal_arms_show_nothing(workload_build: Build, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arms = {"base": workload_build(Variant())}
    found = []
    for seed in range(EQUAL_EXPERIMENTS):
        folder = tmp_path / str(seed)
        folder.mkdir()
        settings = f'runs = 10\nseed = {seed}\naa = true\nprofile = "same"'
        condition = condition_of(folder, plan_of(arms, settings, "--epochs 2 --repeat sha256=500"), capsys)
        (again,) = condition["candidates"]
        assert again["runs"] == 10
        found.append(flagged(again["rows"]))
    with capsys.disabled():
        print(f"\nequal arms: {sum(map(bool, found))} of {EQUAL_EXPERIMENTS} experiments have a flagged row: {found}")
    assert sum(map(bool, found)) <= FLAGGED_AT_MOST


RUNS = 30
PERCENTS = (5, 10)


@pytest.fixture(scope="module")
def planted_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the one experiment with all planted arms is kept, which several tests look at."""
    return tmp_path_factory.mktemp("planted")


@pytest.fixture
def planted(planted_folder: Path, workload_build: Build, capsys: pytest.CaptureFixture[str]) -> Callable[[str], Row]:
    """The condition of that experiment, by category or by function."""
    base = Variant()
    arms = {"base": workload_build(base), "base-lto": workload_build(replace(base, lto=True))}
    for percent in PERCENTS:
        for lto in (False, True):
            name = f"planted-{percent}{'-lto' if lto else ''}"
            arms[name] = workload_build(replace(base, slower_hash=percent, lto=lto))
    plan = plan_of(arms, f"runs = {RUNS}\nseed = 1\nprimary = 'total'", "--epochs 1 --repeat sha256=4000")
    return lambda dimension: condition_of(planted_folder, plan, capsys, dimension)


def compared(folder: Path, baseline: str, candidate: str, dimension: str, capsys: pytest.CaptureFixture[str]) -> Row:
    """Two arms of that experiment, by `compare --format json`."""
    capsys.readouterr()
    options = ["--by", dimension, "--phase", "^phase::", "--format", "json"]
    assert main(["--store", str(folder / "store"), "compare", baseline, candidate, *options]) == 0
    (result,) = json.loads(capsys.readouterr().out)["candidates"]
    assert isinstance(result, dict)
    return result


def candidate_of(condition: Row, name: str) -> Row:
    return by_name(condition["candidates"])[name]


@pytest.mark.parametrize("percent", PERCENTS)
@pytest.mark.parametrize("lto", ["", "-lto"])
def test_a_small_change_is_named_alone(
    planted: Callable[[str], Row], planted_folder: Path, capsys: pytest.CaptureFixture[str], percent: int, lto: str
) -> None:
    planted("category")
    arms = f"base{lto}", f"planted-{percent}{lto}"
    assert flagged(compared(planted_folder, *arms, "category", capsys)["rows"]) == {"SHA-256": "slower"}
    functions = flagged(compared(planted_folder, *arms, "function", capsys)["rows"])
    assert functions[PLANTED_FUNCTION] == "slower"
    assert all(name.startswith("sha256::") for name in functions)


@pytest.mark.parametrize("percent", PERCENTS)
def test_a_small_change_is_named_beside_other_optimization(planted: Callable[[str], Row], percent: int) -> None:
    """Only one arm is optimized at link time: what else is flagged is what that alone changes, by the program's timers and by
    the same comparison without the planted change."""
    categories, functions = planted("category"), planted("function")
    candidate = candidate_of(categories, f"planted-{percent}-lto")
    timers = by_name(candidate["metrics"])
    found = flagged(candidate["rows"])
    assert found.pop("SHA-256") == "slower"
    for category, verdict in found.items():
        low, high = timers[PHASE_OF_CATEGORY[category]]["delta_interval"]
        assert high < 0 if verdict == "faster" else low > 0, category
    moved = flagged(candidate_of(functions, f"planted-{percent}-lto")["rows"])
    assert moved[PLANTED_FUNCTION] == "slower"
    optimized = by_name(candidate_of(functions, "base-lto")["rows"])
    for name, verdict in moved.items():
        if not name.startswith("sha256::") and name != "(rest)":
            low, high = optimized[name]["delta_interval"]
            assert high < 0 if verdict == "faster" else low > 0, name


@pytest.mark.parametrize("percent", PERCENTS)
@pytest.mark.parametrize("lto", ["", "-lto"])
def test_profile_and_timers_agree(planted: Callable[[str], Row], percent: int, lto: str) -> None:
    candidate = candidate_of(planted("category"), f"planted-{percent}{lto}")
    rows, timers = by_name(candidate["rows"]), by_name(candidate["metrics"])
    slowdown = candidate["total"]["baseline"] / timers["total"]["baseline"]
    assert 1 < slowdown < 1.2
    assert agree(candidate["total"], timers["total"], slowdown)
    assert agree(rows["SHA-256"], timers["sha256"], slowdown)
    for category, phase in PHASE_OF_CATEGORY.items():
        assert agree(rows[category], timers[phase], slowdown), category


@pytest.mark.parametrize("percent", PERCENTS)
@pytest.mark.parametrize("lto", ["", "-lto"])
def test_share_of_the_difference(planted: Callable[[str], Row], percent: int, lto: str) -> None:
    """The interval of what SHA-256 accounts for holds all of it where nothing else changed, else what the timers say."""
    condition = planted("category")
    name = f"planted-{percent}{lto}"
    (gain,) = [gain for gain in condition["gains"] if gain["candidate"] == name]
    low, high = by_name(gain["rows"])["SHA-256"]["share_interval"]
    timers = by_name(candidate_of(condition, name)["metrics"])
    expected = timers["sha256"]["delta"] / timers["total"]["delta"] if lto else 1.0
    assert low <= expected <= high
