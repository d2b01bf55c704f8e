"""Every `slotscope` command line of the pages is one that the program would run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from profiler.cli.main import COMMANDS, command_parser

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
# Placeholders of usage lines, such as SELECTOR... and [OPTIONS], are no commands.
_USAGE = re.compile(r"\[[A-Z-]|\.\.\.|\bCOMMAND\b")


def command_lines(page: Path) -> list[str]:
    """Lines that begin with slotscope in blocks of code, with what continues them."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = re.findall(r"^(?: {4}|\$ )?(slotscope .*)$", text, re.MULTILINE)
    return [line for line in lines if not _USAGE.search(line)]


def found() -> list[tuple[str, str]]:
    return [(page.name, line) for page in PAGES for line in command_lines(page)]


@pytest.mark.parametrize(("page", "line"), found(), ids=lambda value: value[:60])
def test_command_line(page: str, line: str) -> None:
    command = line.partition(" > ")[0]  # where the output goes is the shell's matter
    words = shlex.split(command, comments=True)[1:]
    if words[0] == "--store":
        words = words[2:]
    assert words[0] in COMMANDS, page
    command_parser(words[0]).parse_args(words[1:])


def test_pages_with_recipes_have_commands() -> None:
    counts = {page.name: len(command_lines(page)) for page in PAGES}
    assert counts["lighthouse.md"] >= 12
    assert counts["README.md"] >= 5
    assert counts["rules.md"] >= 4
