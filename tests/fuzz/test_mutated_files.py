"""Damaged inputs of every kind, through the whole program: a result, or an error in one line, in bounded time and memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzz import cases
from fuzz.good_inputs import MAKERS, good_input

SEEDS = 15
CHUNKS = 20

pytestmark = [pytest.mark.fuzz, pytest.mark.usefixtures("warm")]


@pytest.fixture(scope="module")
def warm(cache_home: Path) -> None:
    cases.warm_up()


def _seeds() -> list[object]:
    """Chunks of seeds, of which the first one is for every day."""
    chunks = [range(SEEDS * chunk, SEEDS * (chunk + 1)) for chunk in range(CHUNKS)]
    return [pytest.param(chunk, marks=(pytest.mark.full,) if chunk.start else (), id=str(chunk.start)) for chunk in chunks]


def _made(name: str) -> None:
    if good_input(name) is None:
        pytest.skip("a tool that makes this input is not installed")


@pytest.mark.parametrize("name", MAKERS)
def test_an_undamaged_input_gives_a_result(name: str, tmp_path: Path) -> None:
    _made(name)
    good = good_input(name)
    assert good is not None
    files = {file: good.wrap(data) if file in good.targets else data for file, data in good.files.items()}
    case = cases.use(name, -1, good.commands[0], files, tmp_path)
    assert (case.fault, case.outcome.code) == ("", 0), str(case)


@pytest.mark.parametrize("seeds", _seeds())
@pytest.mark.parametrize("name", MAKERS)
def test_a_damaged_one_a_result_or_one_line(name: str, seeds: range, tmp_path: Path) -> None:
    _made(name)
    faults = []
    for seed in seeds:
        directory = tmp_path / str(seed)
        directory.mkdir()
        case = cases.run_case(name, seed, directory)
        if case.fault:
            faults.append(str(case))
    assert not faults, "\n".join(faults)
