"""The page about rule files: its example is right, and it knows every key and every built-in set."""

from __future__ import annotations

import re
from pathlib import Path

from profiler.model.rule_finding import MISTAKES, FindingKind
from profiler.rules.loader import builtin_names, load_rule_sets, parse_rule_file

PAGE = (Path(__file__).resolve().parents[4] / "docs" / "rules.md").read_text(encoding="utf-8")
EXAMPLE = re.search(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def section(heading: str) -> str:
    return PAGE[PAGE.index(f"## {heading}\n") :].split("\n## ")[0]


def test_every_finding_of_a_check_is_described_mistakes_first() -> None:
    described = re.findall(r"^\| `([a-z ]+)` \|", section("Checking a file"), re.MULTILINE)
    assert sorted(described) == sorted(FindingKind)
    assert set(described[: len(MISTAKES)]) == MISTAKES


def test_the_example_is_read_as_the_page_says() -> None:
    assert EXAMPLE is not None
    read = parse_rule_file(EXAMPLE[1], "example.toml")
    assert read.extends == ("native",)
    assert [rule.category for rule in read.rules] == ["registry copy", "shuffling ({name})", "checksum", ""]
    assert [rule.is_passthrough for rule in read.rules] == [False, False, True, False]
    assert [rule.is_transparent for rule in read.rules] == [False, False, False, True]
    checksum = read.rules[2].function
    assert checksum is not None
    assert [bool(checksum.search(name)) for name in ("crc32c_extend", "adler32", "my_crc32c_")] == [True, True, False]


def test_every_key_is_described_and_none_that_does_not_exist() -> None:
    described = set(re.findall(r"^\| `(\w+)` \|", section("Keys"), re.MULTILINE))
    keys = {"category", "group", "function", "file", "dso", "under", "passthrough", "transparent", "fallback"}
    assert described == keys
    for key in described - {"category", "transparent"}:
        value = "true" if key in ("passthrough", "fallback") else "'x'"
        rule = f"[[rule]]\ncategory = 'c'\n{key} = {value}\n" + ("" if key == "function" else "function = 'y'\n")
        assert len(parse_rule_file(rule, "key.toml").rules) == 1


def test_built_in_sets_are_named_and_a_file_is_tried_before_what_it_extends(tmp_path: Path) -> None:
    assert all(f"`{name}`" in PAGE for name in builtin_names())
    file = tmp_path / "own.toml"
    file.write_text("extends = ['ethereum', 'native']\n[[rule]]\ncategory = 'own'\nfunction = 'own'\n", encoding="utf-8")
    origins = [rule.origin.partition(":")[0] for rule in load_rule_sets((str(file),)).rules]
    assert list(dict.fromkeys(origins)) == [str(file), "ethereum.toml", "native.toml", "common.toml"]
