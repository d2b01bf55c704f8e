"""Pages that list categories: they have the groups of the rules, and their examples are in the category that they stand for."""

from __future__ import annotations

import re
from pathlib import Path

from profiler.model.rule_finding import NamedPlace
from profiler.rules.check.rule_trial import matches_place
from profiler.rules.loader import load_rule_sets
from symbolize.function_key import function_key

DOCS = Path(__file__).resolve().parents[4] / "docs"
RULES = load_rule_sets().rules
GROUP_OF = {rule.category: rule.group for rule in RULES if rule.group}
NO_FUNCTION_NEEDED = {"kernel: page faults", "kernel: memory map", "kernel: other"}


def rows(page: str, header: str) -> list[list[str]]:
    text = (DOCS / page).read_text(encoding="utf-8")
    table = re.search(rf"^{re.escape(header)}\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert table is not None, header
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[1].splitlines()]


def category_of(name: str) -> str:
    """Of the first rule that takes the function wherever it is called."""
    key = function_key(name)
    place = NamedPlace(key.key, key.trait_key, dso="lcli")
    found = (rule for rule in RULES if rule.under is None and not rule.is_fallback and matches_place(rule, place))
    rule = next(found, None)
    return rule.category if rule else ""


def test_all_categories_stand_under_their_groups() -> None:
    listed = {group: categories.split(", ") for group, categories in rows("rules.md", "| group | categories |")}
    expected: dict[str, set[str]] = {}
    for category, group in GROUP_OF.items():
        expected.setdefault(group, set()).add(category)
    assert {group: set(categories) for group, categories in listed.items()} == expected
    assert sum(map(len, listed.values())) == len(GROUP_OF)


def test_passthrough_categories_are_told() -> None:
    text = " ".join((DOCS / "rules.md").read_text(encoding="utf-8").split())
    assert "memmove, malloc, DefaultHasher and the three of the kernel are pass-through" in text
    passthrough = {rule.category for rule in RULES if rule.is_passthrough}
    kernel = {category for category, group in GROUP_OF.items() if group == "kernel"}
    assert len(kernel) == 3
    assert passthrough == {"memmove", "malloc", "DefaultHasher"} | kernel


def test_examples_of_the_categories_of_a_client() -> None:
    table = rows("lighthouse.md", "| category | group | holds | for example |")
    assert len(table) == len({row[0] for row in table}) >= 18
    for category, group, _, examples in table:
        assert GROUP_OF[category] == group
        names = re.findall(r"`([^`]+)`", examples)
        assert {name: category_of(name) for name in names} == dict.fromkeys(names, category)
        assert names or category in NO_FUNCTION_NEEDED


def test_categories_that_the_page_names_exist() -> None:
    text = (DOCS / "lighthouse.md").read_text(encoding="utf-8")
    told = text[text.index("## ethlambda") :]
    named = set(re.findall(r"`([A-Z][\w-]*(?: \w+)?|[a-z]+ [a-z]+|pairings|modexp|database|network|malloc)`", told)) - {
        "RUSTFLAGS"
    }
    assert {name for name in named if name not in GROUP_OF} == set()
    assert len(named) > 10
