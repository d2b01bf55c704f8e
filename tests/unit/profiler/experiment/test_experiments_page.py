"""docs/experiments.md and the plan format: every key is in the page, and its plans are plans."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

from profiler.experiment.plan import plan_file
from profiler.experiment.plan.plan_file import parse_plan

PAGE = Path(__file__).resolve().parents[4] / "docs" / "experiments.md"
TEXT = PAGE.read_text()
PLANS = re.findall(r"^```toml\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
_READERS = {"text", "flag", "number_of", "count", "seconds", "words", "pairs", "choice", "table", "has", "regex", "address"}
_HELPERS = {"_regex", "_address", "_as_option"}


def keys_read() -> set[str]:
    """Every key that the reader of plans asks for: first argument of the table's methods, second of the functions over them."""
    found = {"regex", "json", "prometheus", "stat", "event"}
    for node in ast.walk(ast.parse(Path(plan_file.__file__).read_text())):
        if not isinstance(node, ast.Call):
            continue
        place = None
        if isinstance(node.func, ast.Attribute) and node.func.attr in _READERS:
            place = 0
        elif isinstance(node.func, ast.Name) and node.func.id in _HELPERS:
            place = 1
        if place is not None and len(node.args) > place:
            argument = node.args[place]
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                found.add(argument.value)
    return found


def test_keys_are_found_in_the_source() -> None:
    assert {
        "name",
        "swap",
        "ready",
        "port",
        "log",
        "metrics",
        "cgroup",
        "find",
        "append",
        "stop_timeout",
        "cpus",
    } <= keys_read()


@pytest.mark.parametrize("key", sorted(keys_read()))
def test_every_key_is_in_the_page(key: str) -> None:
    assert f"`{key}`" in TEXT


@pytest.mark.parametrize("number", range(len(PLANS)))
def test_plans_of_the_page_are_plans(number: int) -> None:
    plan = parse_plan(PLANS[number], Path("/plans/plan.toml"))
    assert plan.name == tomllib.loads(PLANS[number])["experiment"]["name"]


def test_defaults_of_the_page() -> None:
    """The defaults that the tables name, against those of a plan that sets nothing."""
    variants = "".join(f'[[variant]]\nname = "{name}"\nbinary = "{name}"\n' for name in "ab")
    plan = parse_plan(f'[experiment]\nname = "x"\ncommand = ["{{binary}}"]\n{variants}', Path("/plans/plan.toml"))
    table = TEXT.partition("### `[experiment]`")[2].partition("###")[0]
    shown = dict(re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \|", table, re.MULTILINE))
    assert shown["runs"] == str(plan.runs)
    assert shown["warmup"] == str(plan.warmup)
    assert shown["profile"] == f"`{plan.profile}`"
    assert shown["design"] == f"`{plan.design}`"
    assert shown["per"] == f"{plan.per:g}"
    assert shown["margin"] == f"{100 * plan.margin:g}"
    assert shown["frequency"] == str(plan.frequency_hz)
    assert shown["window"] == f"{plan.window_s:g} s"
    assert plan.retries == 2 + plan.runs // 5
