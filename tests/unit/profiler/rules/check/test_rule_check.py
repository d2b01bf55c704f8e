"""What `rules check` finds, and that the built-in sets have none of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.errors import UsageError
from profiler.model.category import RuleSet
from profiler.model.costs import OtherFunction
from profiler.model.rule_finding import FindingKind, NamedPlace, RuleFinding, RuleUse
from profiler.rules.check.known_names import known_places
from profiler.rules.check.rule_check import check_rules, unused_rules
from profiler.rules.loader import builtin_names, load_rule_sets, origin_name, parse_rule_file
from symbolize.function_key import function_key


def key_of_name(name: str) -> tuple[str, str]:
    found = function_key(name)
    return found.key, found.trait_key


def rules(text: str) -> RuleSet:
    return RuleSet("r", parse_rule_file(text, "r.toml").rules)


def check(text: str, *places: NamedPlace) -> list[tuple[str, FindingKind]]:
    return [(finding.origin, finding.kind) for finding in findings_of(text, *places)]


def findings_of(text: str, *places: NamedPlace) -> tuple[RuleFinding, ...]:
    return check_rules(rules(text), ["r.toml"], key_of_name, places)


def two(first: dict[str, object], second: dict[str, object]) -> str:
    """The second rule begins on line 10."""
    head = ["[[rule]]", *(f"{key} = {_toml(value)}" for key, value in first.items())]
    head += [""] * (9 - len(head))
    return "\n".join([*head, "[[rule]]", *(f"{key} = {_toml(value)}" for key, value in second.items())]) + "\n"


def _toml(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return "true" if value is True else f"'{value}'"


UNREACHABLE = [("r.toml:10", FindingKind.UNREACHABLE)]


@pytest.mark.parametrize(
    ("first", "second", "is_unreachable"),
    [
        ({"category": "a", "function": "sha"}, {"category": "b", "function": "^sha2::"}, True),
        ({"category": "a", "function": "^sha2::"}, {"category": "b", "function": "sha"}, False),
        ({"category": "a", "function": ["^x", "^y"]}, {"category": "b", "function": "^(x1|y2)"}, True),
        ({"category": "a", "function": "^x"}, {"category": "b", "function": ["^x1", "^y"]}, False),
        ({"category": "a", "function": "^x"}, {"category": "b", "function": "^x", "under": "^m$"}, True),
        ({"category": "a", "function": "^x", "under": "^m$"}, {"category": "b", "function": "^x"}, False),
        ({"category": "a", "function": "^x", "under": "m"}, {"category": "b", "function": "^x", "under": "^m$"}, True),
        ({"category": "a", "dso": "^libc"}, {"category": "b", "dso": r"^libc\.so", "function": "^x"}, True),
        ({"category": "a", "dso": "^libc"}, {"category": "b", "function": "^x"}, False),
        ({"category": "a", "file": r"\.rs$"}, {"category": "b", "file": r"/sip\.rs$"}, True),
        # Trait keys are searched for categories alone, so a transparent rule may leave them to others.
        ({"transparent": True, "function": "^core::"}, {"category": "b", "function": "^core::hash"}, False),
        ({"transparent": True, "function": "^core::"}, {"transparent": True, "function": "^core::hash"}, True),
        ({"category": "a", "function": "^core::"}, {"transparent": True, "function": "^core::hash"}, True),
        # Fallback rules are tried after all others, wherever they stand.
        ({"category": "a", "function": "^x", "fallback": True}, {"category": "b", "function": "^x"}, False),
        ({"category": "a", "function": "^x"}, {"category": "b", "function": "^x", "fallback": True}, True),
    ],
)  # fmt: skip
def test_unreachable(first: dict[str, object], second: dict[str, object], is_unreachable: bool) -> None:
    found = [entry for entry in check(two(first, second)) if entry[1] is FindingKind.UNREACHABLE]
    if first.get("fallback"):
        assert found == [("r.toml:1", FindingKind.UNREACHABLE)]
    else:
        assert found == (UNREACHABLE if is_unreachable else [])


def test_rules_before_it_that_take_all_together() -> None:
    text = two({"category": "a", "function": "^x"}, {"category": "b", "function": "^y"})
    text += "\n[[rule]]\ncategory = 'c'\nfunction = '^x1|^y1'\n\n[[rule]]\ncategory = 'd'\nfunction = '^y2|^z'\n"
    found = findings_of(text)
    assert [(finding.origin, finding.kind) for finding in found] == [
        ("r.toml:14", FindingKind.UNREACHABLE),
        ("r.toml:18", FindingKind.UNREACHABLE_PART),
    ]
    assert found[1].message == "rules before it take all that '^y2' matches"
    assert [finding.is_mistake for finding in found] == [True, False]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("std::vector<int>::push_back", "that of 'std::vector<int>::push_back' is 'std::vector::push_back'"),
        (r"^foo\(int\)$", "that of 'foo(int)' is 'foo'"),
        (r"foo\(.*\)", "that of 'foo()' is 'foo'"),
        (r"malloc@GLIBC_2\.2\.5", "that of 'malloc@GLIBC_2.2.5' is 'malloc'"),
        ("::h[0-9a-f]{16}$", "is 'f'"),
        (r"\.constprop\.0$", "that of 'f.constprop.0' is 'f'"),
        (r"\.llvm\.\d+$", "is 'f'"),
        (r"\.cold$", "that of 'f.cold' is 'f'"),
        (r"\[clone \.isra\.0\]", "that of 'f [clone .isra.0]' is 'f'"),
        (r"\{closure#0\}", "that of '{closure#0}' is '{closure}'"),
        (r"^<.* as core::clone::Clone>::clone", "core::clone::Clone>::clone' is"),
        ("a^b", "no text has this"),
        ("$x", "no text has this"),
        ("^$", "no text has this"),
    ],
)
@pytest.mark.parametrize("key", ["function", "under"])
def test_patterns_that_no_canonical_name_has(key: str, pattern: str, message: str) -> None:
    more = {"function": "^x"} if key == "under" else {}
    found = findings_of(two({"category": "a", key: ["^fine$", pattern], **more}, {"category": "b", "function": "^b"}))
    assert [(finding.origin, finding.kind) for finding in found] == [("r.toml:1", FindingKind.NEVER_MATCHES)]
    assert found[0].message.startswith(f"{key} '{pattern}': no ")
    assert found[0].message.endswith(message) or message in found[0].message


@pytest.mark.parametrize(
    "pattern",
    [
        "operator<", "operator<<", r"operator\(\)", r"operator new\[\]", r"\(anonymous namespace\)::f", "{closure}",
        "memcpy@plt", r"runtime\.\(\*mcache\)", "tree_hash::TreeHash::tree_hash_root", "(?<!x)foo(?=bar)", r"\bword\b",
        "::f$", "~Foo$", r"(\w)\1", "(?i)abc", r"[\w.-]+(/[\w.%~-]+)+\.", "x" * 300,
    ],
)  # fmt: skip
def test_patterns_that_names_may_have(pattern: str) -> None:
    assert check(two({"category": "a", "function": pattern}, {"category": "b", "dso": "^b"})) == []


def test_a_dso_is_a_file_name_without_directories() -> None:
    found = findings_of(two({"category": "a", "dso": "/usr/lib/libfoo"}, {"category": "b", "dso": r"^libfoo\.so|^\[kernel\]$"}))
    assert [(finding.origin, finding.kind) for finding in found] == [("r.toml:1", FindingKind.NEVER_MATCHES)]
    assert found[0].message == "dso '/usr/lib/libfoo': a file's name has no directory"


def test_a_rule_that_never_matches_is_not_called_unreachable_too() -> None:
    assert check(two({"category": "a", "function": "b"}, {"category": "b", "function": "a^b"})) == [
        ("r.toml:10", FindingKind.NEVER_MATCHES)
    ]


PLACES = [
    NamedPlace("x::f", dso="app"),
    NamedPlace("x::g", dso="app"),
    NamedPlace("y::f", "x::T::f"),
    NamedPlace("z"),
    NamedPlace("q::f"),
]


def test_names_that_two_categories_match() -> None:
    text = two({"category": "a", "function": "^x::"}, {"category": "b", "function": "::f$"})
    (found,) = findings_of(text, *PLACES)
    assert (found.origin, found.kind) == ("r.toml:10", FindingKind.OVERLAP)
    assert found.message == "x::f, y::f are 'a' by r.toml:1, which stands before it"
    assert check(text.replace("'b'", "'a'"), *PLACES) == []


def test_a_rule_that_loses_every_name() -> None:
    text = two({"category": "a", "function": "^x::"}, {"category": "b", "function": "::g$"})
    assert check(text, *PLACES) == [("r.toml:10", FindingKind.OVERLAP), ("r.toml:10", FindingKind.ALWAYS_TAKEN)]
    assert check(text) == []


def test_rules_that_an_arm_does_not_need() -> None:
    text = two({"category": "a", "function": "^x::"}, {"category": "b", "function": "^x::f|^q"})
    text += "\n[[rule]]\ncategory = 'c'\nfunction = '^nowhere'\n\n[[rule]]\ncategory = 'd'\nfunction = '^z'\nunder = '^w'\n"
    use = RuleUse("base", PLACES, {"r.toml:1": 10}, (OtherFunction("z", 5, "function = '^z$'"),), 15)
    found = unused_rules(rules(text), ["r.toml"], use)
    assert [(finding.origin, finding.message) for finding in found] == [
        ("r.toml:10", "takes nothing in base: a rule before it takes the frames"),
        ("r.toml:14", "matches nothing in base"),
        ("r.toml:18", "takes nothing in base: 'under' does not hold there, or a rule before it takes the frames"),
    ]
    assert {finding.kind for finding in found} == {FindingKind.UNUSED}
    assert not any(finding.is_mistake for finding in found)


@pytest.mark.parametrize("names", [*((name,) for name in builtin_names()), ("ethereum", "native"), ("native", "ethereum")])
def test_built_in_sets_have_no_mistakes(names: tuple[str, ...]) -> None:
    files = [origin_name(name) for name in names]
    findings = check_rules(load_rule_sets(names), files, key_of_name, known_places(key_of_name))
    assert [finding for finding in findings if finding.is_mistake or finding.kind is FindingKind.UNREACHABLE_PART] == []


def test_known_names_are_many_and_canonical() -> None:
    places = known_places(key_of_name)
    assert len(places) > 400
    assert {place.key for place in places} >= {"sha2::sha256::x86::digest_blocks", "_rjem_sdallocx", "runtime.mallocgc"}
    assert NamedPlace("handle_mm_fault", "", "", "[kernel]") in places
    assert all(key_of_name(place.key)[0] == place.key for place in places)


@given(st.lists(st.text(alphabet="ab:<>()[]{}|*+?^$.\\@ 1,-", max_size=12), min_size=1, max_size=3))
def test_any_pattern_is_checked_without_an_accident(patterns: list[str]) -> None:
    tables = "".join(f"[[rule]]\ncategory = 'c{n}'\nfunction = '{pattern}'\n" for n, pattern in enumerate(patterns))
    try:
        rule_set = rules(tables)
    except UsageError:
        return
    for finding in check_rules(rule_set, ["r.toml"], key_of_name, PLACES):
        assert "\n" not in finding.message


@pytest.mark.parametrize(
    "pattern",
    [
        "((a{1000}){1000}){1000}",
        "a{65000}",
        "(" * 90 + "a" + ")" * 90,
        "|".join(f"name{n}" for n in range(3000)),
        f"({'|'.join(f'name{n}' for n in range(3000))})*",
        "(?:" * 90 + "a" + ")*" * 90,
        "[^a]{500}" * 10,
    ],
    ids=lambda pattern: pattern[:20],
)
def test_huge_patterns(pattern: str) -> None:
    """Refused, or checked with bounded time and memory."""
    text = two({"category": "a", "function": pattern}, {"category": "b", "function": f"^{pattern}"})
    try:
        rule_set = rules(text)
    except UsageError as error:
        assert "exponential time" in str(error)  # noqa: PT017
        return
    assert len(check_rules(rule_set, ["r.toml"], key_of_name, PLACES)) < 10
