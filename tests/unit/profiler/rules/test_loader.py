"""Rule files: what is read, and what is said about mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.errors import UsageError
from profiler.rules.loader import load_rule_sets, parse_rule_file

GOOD = """
# comment
[[rule]]
category = "hashing"
group = "crypto"
function = "^sha"
dso = "app"
passthrough = true

[[rule]]
transparent = true
file = ['^/usr/', '\\.h$']

[[ rule ]]
category = "from {dso}"
under = "^main$"
fallback = true
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"x = {'9' * 5000}", "r.toml:1: not TOML: a number has too many digits"),
        (f"x = {'[' * 100_000}", "r.toml:1: not TOML: arrays or tables are nested too deeply"),
        ("x = 1\nx = 2", "r.toml:2: not TOML: Cannot overwrite a value"),
    ],
    ids=["digits", "nesting", "twice"],
)
def test_text_that_the_parser_gives_up(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_rule_file(text, "r.toml")
    assert str(caught.value) == message


def test_rules_are_read_in_order() -> None:
    hashing, transparent, fallback = parse_rule_file(GOOD, "r.toml").rules
    assert (hashing.category, hashing.group, hashing.is_passthrough) == ("hashing", "crypto", True)
    assert hashing.function is not None
    assert hashing.function.search("sha256") is not None
    assert hashing.dso is not None
    assert hashing.file is None
    assert [rule.origin for rule in (hashing, transparent, fallback)] == ["r.toml:3", "r.toml:10", "r.toml:14"]
    assert transparent.is_transparent
    assert transparent.category == ""
    assert fallback.is_fallback
    assert fallback.under is not None


def test_a_list_of_patterns_means_any_of_them() -> None:
    pattern = parse_rule_file(GOOD, "r.toml").rules[1].file
    assert pattern is not None
    assert [bool(pattern.search(text)) for text in ("/usr/x", "a.h", "a.c")] == [True, True, False]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "r.toml:1: holds no rules"),
        ("# only a comment\n", "r.toml:1: holds no rules"),
        ("[[rule]]\ncategory = \"a\"\nfunktion = 'x'\n", "r.toml:3: unknown key 'funktion', did you mean 'function'?"),
        ("x = 1\n[[rule]]\ncategory = \"a\"\nfunction = 'x'\n", "r.toml:1: unknown key 'x'"),
        ("\n[[rules]]\ncategory = \"a\"\nfunction = 'x'\n", "r.toml:2: unknown key 'rules', did you mean 'rule'?"),
        ("\n[rule]\ncategory = \"a\"\nfunction = 'x'\n", "r.toml:2: rules are written as [[rule]] tables"),
        ("[[rule]]\ncategory = \"a\"\n\nfunction = '('\n", "r.toml:4: 'function' is no regular expression"),
        ("[[rule]]\ncategory = \"a\"\nfunction = ['a', '*']\n", "r.toml:3: 'function' is no regular expression"),
        ("[[rule]]\ncategory = \"a\"\nfile = ''\n", "r.toml:3: 'file' must be a regular expression"),
        ('[[rule]]\ncategory = "a"\nfile = []\n', "r.toml:3: 'file' must be a regular expression"),
        ('[[rule]]\ncategory = "a"\nfile = 3\n', "r.toml:3: 'file' must be a regular expression"),
        (
            "[[rule]]\ncategory = \"a\"\ntransparent = true\nfunction = 'x'\n",
            "r.toml:3: the rule has both category and transparent",
        ),
        ("#\n[[rule]]\nfunction = 'x'\n", "r.toml:2: the rule has neither category nor transparent"),
        ("[[rule]]\ntransparent = false\nfunction = 'x'\n", "r.toml:1: the rule has neither category nor transparent"),
        ('[[rule]]\ncategory = "a"\n', "r.toml:1: the rule has no pattern"),
        ("[[rule]]\ncategory = \"\"\nfunction = 'x'\n", "r.toml:2: 'category' must be a text that is not empty"),
        ("[[rule]]\ncategory = 3\nfunction = 'x'\n", "r.toml:2: 'category' must be a text"),
        ("[[rule]]\ncategory = \"a\\nb\"\nfunction = 'x'\n", "r.toml:2: 'category' must be one line"),
        ("[[rule]]\ncategory = \"other\"\nfunction = 'x'\n", "r.toml:2: 'other' is the name of what no rule takes"),
        ("[[rule]]\ncategory = \"total\"\nfunction = 'x'\n", "r.toml:2: 'total' is the name of a sum in the tables"),
        ("[[rule]]\ncategory = \"(rest)\"\nfunction = 'x'\n", "r.toml:2: '(rest)' is the name of a sum in the tables"),
        ('[[rule]]\ncategory = "x"\ngroup = "total"\nfunction = \'x\'\n', "r.toml:3: 'total' is the name of a sum"),
        ("[[rule]]\ncategory = \"a\"\nfunction = 'x'\npassthrough = 1\n", "r.toml:4: 'passthrough' must be true or false"),
        ("[[rule]]\ntransparent = true\nfallback = true\nfunction = 'x'\n", "r.toml:3: 'fallback' has no meaning"),
        ("[[rule]]\ntransparent = true\ngroup = \"g\"\nfunction = 'x'\n", "r.toml:3: 'group' has no meaning"),
        ("[[rule]]\ncategory = \"a {b}\"\nfunction = '(?P<c>x)'\n", "r.toml:2: '{b}' is neither {dso} nor a named group"),
        (
            "[[rule]]\ncategory = \"a\"\nfunction = 'x'\n[[rule]]\ncategory = \"a\"\nfunction = 'y'\npassthrough = true\n",
            "r.toml:4: category 'a' differs in 'passthrough' from r.toml:1",
        ),
        (
            "[[rule]]\ncategory = 'a'\nunder = 'x'\ngroup = 'g'\n[[rule]]\ncategory = 'a'\nunder = 'y'\ngroup = 'h'\n",
            "r.toml:5: category 'a' has another group in r.toml:1",
        ),
        ("[[rule]]\ncategory = \"a\nfunction = 'x'\n", "r.toml:2: not TOML"),
        ('[[rule]]\ncategory = "a"\nfunction = \'x', "r.toml:3: not TOML"),
        ('extends = ["comon"]\n', "r.toml:1: unknown rule set 'comon', did you mean 'common'?"),
        ('extends = "common"\n', "r.toml:1: 'extends' must be a list"),
    ],
)
def test_mistakes_name_file_and_line(text: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_rule_file(text, "r.toml")
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)


def test_lines_are_counted_around_multi_line_strings() -> None:
    text = "[[rule]]\ncategory = \"a\"\nfunction = '''x\n[[rule]]\nfunktion = 1'''\n[[rule]]\ncategory = \"b\"\nunder = '['\n"
    with pytest.raises(UsageError, match=r"^r\.toml:8: 'under' is no regular expression"):
        parse_rule_file(text, "r.toml")


def test_rules_written_as_inline_tables_have_the_line_of_the_list() -> None:
    file = parse_rule_file("\nrule = [{category = \"a\", function = 'x'}, {category = \"b\", function = 'y'}]\n", "r.toml")
    assert [rule.origin for rule in file.rules] == ["r.toml:2", "r.toml:2"]


def test_an_unknown_rule_set_is_answered_with_the_list() -> None:
    with pytest.raises(UsageError) as raised:
        load_rule_sets(("etherium",))
    assert str(raised.value) == (
        "unknown rule set 'etherium', did you mean 'ethereum'? (built-in: common, ethereum, native; or give a file)"
    )
    with pytest.raises(UsageError) as raised:
        load_rule_sets(("mine",))
    assert str(raised.value) == "unknown rule set 'mine' (built-in: common, ethereum, native; or give a file)"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    missing = tmp_path / "missing.toml"
    with pytest.raises(UsageError, match=r"missing\.toml: cannot read the rule file: No such file"):
        load_rule_sets((str(missing),))
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"a = 1\n\xff\xfe")
    with pytest.raises(UsageError, match=r"binary\.toml:2: not UTF-8"):
        load_rule_sets((str(binary),))
    with pytest.raises(UsageError, match="cannot read the rule file: Is a directory"):
        load_rule_sets((f"{tmp_path}/",))


def test_own_rules_come_before_what_they_extend(tmp_path: Path) -> None:
    own = tmp_path / "mine.toml"
    own.write_text('extends = ["native"]\n[[rule]]\ncategory = "mine"\nfunction = \'^mine::\'\n')
    rule_set = load_rule_sets((str(own),))
    assert rule_set.name == "mine"
    assert rule_set.rules[0].category == "mine"
    files = list(dict.fromkeys(rule.origin.rsplit(":", 1)[0] for rule in rule_set.rules))
    assert files == [str(own), "native.toml", "common.toml"]


def test_no_rule_set_at_all() -> None:
    with pytest.raises(UsageError, match="no rule set given"):
        load_rule_sets(())
