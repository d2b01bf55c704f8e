"""Patterns that take exponential time: OWASP's and other published examples, and harmless ones that look like them."""

from __future__ import annotations

import pytest

from profiler.cli.main import main
from profiler.errors import UsageError
from profiler.rules.loader import parse_rule_file
from profiler.rules.regex_cost import is_explosive
from profiler.rules.regex_tree import parse_regex

# https://owasp.org/www-community/attacks/Regular_expression_Denial_of_Service_-_ReDoS, and siblings of each.
EXPLOSIVE = [
    "^(a+)+$",
    "^([a-zA-Z]+)*$",
    "^(a|aa)+$",
    "^(a|a?)+$",
    "^(.*a)*$",
    r"^(([a-z])+.)+[A-Z]([a-z])+$",
    r"(\w+\s?)*$",
    r"(\w+:?)+$",
    "(a*)*b",
    "(a*?)*?b",
    "(x+x+)+y",
    "((ab)*)+c",
    "(a|b|ab)*c",
    "(?:std::(?:\\w+::)*)*x",
]
HARMLESS = [
    r"(\w+::)*x",
    "([^,]*,)*x",
    "(ab|a)*c",
    r"(\d{1,3}\.){3}",
    r"^_*(mem(move|cpy))(_\w+)?$",
    r"[\w.-]+(/[\w.%~-]+)+\.",
    r"(::\{closure\})*$",
    "a*a*a*",
    "(?:a|b)*c",
]


@pytest.mark.parametrize("pattern", EXPLOSIVE)
def test_explosive(pattern: str) -> None:
    assert is_explosive(parse_regex(pattern))


@pytest.mark.parametrize("pattern", HARMLESS)
def test_harmless(pattern: str) -> None:
    assert not is_explosive(parse_regex(pattern))


@pytest.mark.parametrize("key", ["function", "file", "dso", "under"])
@pytest.mark.parametrize("pattern", EXPLOSIVE)
def test_a_rule_file_with_one_is_refused_with_its_line(key: str, pattern: str) -> None:
    text = f"[[rule]]\ncategory = 'c'\n{key} = ['^fine$', '{pattern}']\n"
    with pytest.raises(UsageError, match=rf"^r\.toml:3: '{key}' can take exponential time"):
        parse_rule_file(text, "r.toml")


@pytest.mark.parametrize("option", ["--phase", "--focus", "--ignore"])
def test_an_option_with_one_is_refused(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "nothing", option, r"(\w+)*$"]) == 2
    assert "can take exponential time" in capsys.readouterr().err


@pytest.mark.parametrize("pattern", HARMLESS)
def test_a_rule_file_with_harmless_ones_is_read(pattern: str) -> None:
    assert parse_rule_file(f"[[rule]]\ncategory = 'c'\nfunction = '{pattern}'\n", "r.toml").rules
