"""The quick test of a pattern says what `re` says."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.model.analysis_choices import DEFAULT_RULE_SETS
from profiler.rules.loader import load_rule_sets
from profiler.rules.presence import presence_test

PATTERNS = (
    "abc",
    "a|b|c",
    "^a|b",
    "^ab|^b.*c$|b+a|c$",
    "(^|::)ab|c",
    "(^|b)+a|cc",
    "(^|b)?a|cc",
    "(?:a|^b)|(?:^c|ab)",
    "(?:a|^b)c|d",
    "(?:a|b)+|^$",
    "[|]a|[]|b]c|[^]|]$",
    "a\\|b|\\^c|\\(a\\)",
    "(a)(b)\\1|c",
    "(?i:A)|b",
    "(?P<x>a)b|(?P<y>c)",
    "(?P<x>a)(?P=x)|b",
    "^(?!ab)a|c(?=a)",
    "a||b",
    "^|a",
    "|",
    "a.c|\\.b|a{2}|^c{2}",
    "\\ba\\b|\\Ab|c\\Z",
)


@pytest.mark.parametrize("pattern", PATTERNS)
@given(text=st.text(alphabet="abcA:|^.()[]$ \n", max_size=8))
def test_says_what_a_search_says(pattern: str, text: str) -> None:
    compiled = re.compile(pattern)
    assert presence_test(pattern)(text) == (compiled.search(text) is not None)


@pytest.mark.parametrize("flag", ["i", "m", "a", "s"])
def test_flags_are_kept(flag: str) -> None:
    pattern = f"(?{flag})^b|a.|\\wc"
    compiled = re.compile(pattern)
    for text in ("A", "B", "a", "b", "a\nb", "a\n", "éc", "xb"):
        assert presence_test(pattern)(text) == (compiled.search(text) is not None)


NAMES = (
    "core::ptr::drop_in_place", "milhouse::tree::Tree::tree_hash", "_int_malloc", "__memmove_avx_unaligned_erms", "main",
    "state_processing::per_epoch_processing::process_epoch", "tree_hash::merkle_root", "std::vector::push_back", "do_futex",
    "xfutex", "types::beacon_state::BeaconState::committee_cache::get", "sha2::sha256::compress", "blst_p1_add", "[libc]+0x10",
    "", "a", "::", "asm_sysvec_apic_timer_interrupt", "alloc::collections::btree::map::BTreeMap::get", "FnOnce::call_once",
)  # fmt: skip


@pytest.mark.parametrize("rule_set", DEFAULT_RULE_SETS)
def test_built_in_patterns(rule_set: str) -> None:
    patterns = [rule.function for rule in load_rule_sets((rule_set,)).rules if rule.function is not None]
    assert len(patterns) > 10
    found = 0
    for pattern in patterns:
        is_in = presence_test(pattern.text)
        for name in NAMES:
            for text in (name, name + "::", "x" + name, name.upper()):
                expected = pattern.search(text) is not None
                assert is_in(text) == expected, (pattern.text, text)
                found += expected
    assert found > 10
