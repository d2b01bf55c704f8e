"""The page about the command line knows every command and every option, and nothing that does not exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from profiler.cli.export import SUFFIXES
from profiler.cli.fail_on import EXIT_LIMIT_EXCEEDED
from profiler.cli.main import COMMANDS, EXIT_BROKEN_PIPE, EXIT_INTERRUPTED, command_parser
from profiler.cli.options import FORMATS, MARKDOWN_ROWS, TABLE_ROWS
from profiler.model.analysis_choices import DIMENSIONS, VIEWS, PhaseScope
from profiler.model.comparison import Verdict

PAGE = (Path(__file__).resolve().parents[4] / "docs" / "cli.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
SHARED = re.search(r"^## What is counted, and how\n(.*?)(?=^## )", PAGE, re.MULTILINE | re.DOTALL)
READING = ("report", "compare", "export", "explain")
EVERYWHERE = {"-h", "--help", "--store"}


def options_of(name: str) -> set[str]:
    return {option for action in command_parser(name)._actions for option in action.option_strings} - EVERYWHERE


def described(name: str) -> str:
    assert SHARED is not None
    return SECTIONS[name] + (SHARED[1] if name in READING else "")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_is_described(name: str) -> None:
    assert f"slotscope {name}" in SECTIONS[name]
    missing = {option for option in options_of(name) if not re.search(rf"`{re.escape(option)}[ `]", described(name))}
    if name == "list":
        missing -= {option for option in missing if f"[{option} " in SECTIONS[name]}
    assert missing == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_no_option_is_described_that_does_not_exist(name: str) -> None:
    claimed = set(re.findall(r"^\| `(--?[a-z-]+)", SECTIONS[name], re.MULTILINE))
    assert claimed <= options_of(name)


def test_shared_options_exist_in_every_reading_command() -> None:
    assert SHARED is not None
    claimed = set(re.findall(r"^\| `(--[a-z-]+)", SHARED[1], re.MULTILINE))
    assert claimed == options_of("report")
    for name in ("compare", "export", "explain"):
        counting = {"--rules", "--phase", "--phase-scope", "--focus", "--ignore", "--event", "--debug-dir"}
        assert counting <= options_of(name)


def test_choices_and_defaults_are_told() -> None:
    assert all(f"`{dimension}`" in PAGE for dimension in DIMENSIONS)
    for option, choices in (
        ("--view", VIEWS),
        ("--phase-scope", PhaseScope),
        ("--format", FORMATS),
        ("--format", tuple(SUFFIXES)),
    ):
        assert rf"`{option} " + r"\|".join(choices) + "`" in PAGE
    assert f"{TABLE_ROWS} in tables and {MARKDOWN_ROWS} in Markdown" in PAGE
    assert all(f"`{suffix}`" in PAGE for suffix in SUFFIXES.values())


def test_exit_codes_and_verdicts_are_told() -> None:
    for code in (0, 1, 2, EXIT_LIMIT_EXCEEDED, EXIT_INTERRUPTED, EXIT_BROKEN_PIPE):
        assert re.search(rf"^\| {code} \|", PAGE, re.MULTILINE)
    assert all(f"`{verdict}`" in PAGE for verdict in Verdict)


def test_every_command_is_in_the_table_at_the_top() -> None:
    assert {name for name in COMMANDS if f"[`{name}`](#{name})" in PAGE} == set(COMMANDS)
