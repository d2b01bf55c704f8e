"""Verdicts on recordings that are kept: a planted change is found where it was planted, by the program's own timers too.

``tests/fixtures/planted`` holds the arms base, again (the same program), planted (one function made slower) and planted-lto
(the same change with link-time optimization).  The program's timers, CPU ns a phase, are metrics of the plain runs; the
profiles come from other runs, so the two agree within their joint interval.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from profiler.cli.main import main

FIXTURE = Path(__file__).parent.parent / "fixtures" / "planted"
# The category of each phase in the pure mode.
CATEGORY_OF_PHASE = {
    "iterate": "tree iteration",
    "update": "tree update",
    "hash": "tree hashing",
    "sha256": "SHA-256",
    "shuffle": "shuffling",
    "copy": "memmove",
    "allocate": "malloc",
    "epoch": "epoch processing",
}
# Named only where the C library is the one of the recording.
IN_THE_C_LIBRARY = {"memmove", "malloc"}

Row = dict[str, Any]


def compare(capsys: pytest.CaptureFixture[str], candidate: str, dimension: str) -> Row:
    capsys.readouterr()
    arguments = ["--store", str(FIXTURE / "store"), "compare", "base", candidate, "--by", dimension, "--format", "json"]
    assert main([*arguments, "--debug-dir", str(FIXTURE)]) == 0
    (result,) = json.loads(capsys.readouterr().out)["candidates"]
    assert isinstance(result, dict)
    return result


def flagged(rows: list[Row]) -> dict[str, str]:
    return {row["name"]: row["verdict"] for row in rows if row["verdict"] in ("faster", "slower")}


def half_width(row: Row) -> float:
    low, high = row["delta_interval"]
    return float(high - low) / 2


def agree(profile: Row, timer: Row) -> bool:
    """Do two independent estimates of one difference agree: 95 % intervals, variances add."""
    return abs(profile["delta"] - timer["delta"]) <= math.hypot(half_width(profile), half_width(timer))


def by_name(rows: list[Row]) -> dict[str, Row]:
    return {row["name"]: row for row in rows}


def test_same_program_twice_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    for dimension in ("category", "function", "symbol"):
        result = compare(capsys, "again", dimension)
        assert result["runs"] == 10
        assert result["test"] == "paired t"
        assert flagged([*result["rows"], result["total"]]) == {}


def test_planted_change_is_flagged_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert flagged(compare(capsys, "planted", "category")["rows"]) == {"SHA-256": "slower"}
    functions = flagged(compare(capsys, "planted", "function")["rows"])
    assert functions.keys() >= {"sha256::compress_shani"}
    assert set(functions.values()) == {"slower"}
    assert all(name.startswith("sha256::") for name in functions)


@pytest.mark.parametrize("candidate", ["planted", "planted-lto"])
def test_profile_and_timers_agree(capsys: pytest.CaptureFixture[str], candidate: str) -> None:
    result = compare(capsys, candidate, "category")
    rows, timers = by_name(result["rows"]), by_name(result["metrics"])
    planted = rows["SHA-256"], timers["sha256"]
    assert all(row["delta"] > 0 and row["delta_interval"][0] > 0 for row in planted)
    assert agree(*planted)
    for phase, category in CATEGORY_OF_PHASE.items():
        if category not in IN_THE_C_LIBRARY:
            assert agree(rows[category], timers[phase]), category


def test_link_time_optimization_in_one_arm(capsys: pytest.CaptureFixture[str]) -> None:
    """What it really changed is flagged, and the timers say so as well; moving code between symbols is no change."""
    result = compare(capsys, "planted-lto", "category")
    timers = by_name(result["metrics"])
    phase_of_category = {category: phase for phase, category in CATEGORY_OF_PHASE.items()}
    found = flagged(result["rows"])
    assert found["SHA-256"] == "slower"
    for category, verdict in found.items():
        low, high = timers[phase_of_category[category]]["delta_interval"]
        assert high < 0 if verdict == "faster" else low > 0
    functions = flagged(compare(capsys, "planted-lto", "function")["rows"])
    assert functions["sha256::compress_shani"] == "slower"
    slower = {name for name, verdict in functions.items() if verdict == "slower"}
    assert all(name.startswith("sha256::") for name in slower)


def test_symbols_move_where_functions_do_not(capsys: pytest.CaptureFixture[str]) -> None:
    """By physical symbol, link-time inlining alone makes functions appear and disappear."""
    functions = compare(capsys, "planted-lto", "function")["rows"]
    symbols = compare(capsys, "planted-lto", "symbol")["rows"]
    false_moves = flagged(symbols).keys() - flagged(functions).keys()
    gone = [row for row in symbols if row["candidate"] == 0 and row["name"] in false_moves]
    new = [row for row in symbols if row["baseline"] == 0 and row["name"] in false_moves]
    assert len(false_moves) >= 4
    assert gone
    assert new
    assert sum(abs(row["delta"]) for row in symbols) > 4 * sum(abs(row["delta"]) for row in functions)
