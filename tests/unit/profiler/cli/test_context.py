"""What the terminal can show, and where the store is."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from profiler.cli.context import CliContext, default_store_directory, existing_store, terminal_style
from support.terminal_streams import Terminal


def context(stdout: io.StringIO, store: Path = Path("no-store-here")) -> CliContext:
    return CliContext(store, stdout, io.StringIO())


@pytest.mark.parametrize(
    ("stdout", "variables", "color"),
    [
        (Terminal(), {"TERM": "xterm"}, True),
        (Terminal(), {"TERM": "xterm", "NO_COLOR": ""}, True),  # set but empty does not count
        (Terminal(), {"TERM": "xterm", "NO_COLOR": "1"}, False),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {"TERM": "xterm"}, False),
    ],
)
def test_color(stdout: io.StringIO, variables: dict[str, str], color: bool) -> None:
    assert terminal_style(context(stdout), variables).color is color


@pytest.mark.parametrize(
    ("variables", "width"),
    [({}, 120), ({"COLUMNS": "60"}, 60), ({"COLUMNS": "5"}, 40), ({"COLUMNS": "x"}, 120), ({"COLUMNS": "0"}, 120)],
)
def test_width_of_a_file(variables: dict[str, str], width: int) -> None:
    assert terminal_style(context(io.StringIO()), variables).width == width


def test_store_directory() -> None:
    assert default_store_directory({}) == Path(".slotscope")
    assert default_store_directory({"SLOTSCOPE_STORE": ""}) == Path(".slotscope")
    assert default_store_directory({"SLOTSCOPE_STORE": "/data/runs"}) == Path("/data/runs")


def test_a_store_that_is_not_there(tmp_path: Path) -> None:
    assert existing_store(context(io.StringIO(), tmp_path / "none")) is None
