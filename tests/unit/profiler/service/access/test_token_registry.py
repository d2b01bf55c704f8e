"""Tokens: what is kept of a secret, and what becomes of one that was revoked."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from profiler.service.access.authentication import valid_token
from profiler.service.access.token_registry import Scope, Token, digest_of, is_secret, is_token_name, new_secret
from support.aggregators import START_NS, add_token, aggregator_in


def test_a_secret_has_256_random_bits_and_no_other_form_is_taken() -> None:
    secret = new_secret()
    assert secret.startswith("slsc_")
    assert len(secret) == 5 + 43  # 43 characters of 6 bits hold 256 bits
    assert is_secret(secret)
    assert len({new_secret() for _ in range(1000)}) == 1000
    for other in ("", "slsc_", secret[:-1], secret + "A", secret + "\n", secret.replace("slsc_", "ghp__"), "slsc_" + "é" * 43):
        assert not is_secret(other)


def test_the_digest_is_sha256_of_the_whole_secret() -> None:
    assert digest_of("slsc_x") == hashlib.sha256(b"slsc_x").digest()


@pytest.mark.parametrize("name", ["", "-x", "a/b", "a b", "..", "x" * 65, "a\n", "ä"])
def test_names_that_are_not_taken(name: str) -> None:
    assert not is_token_name(name)


def test_no_file_of_the_store_holds_a_secret(tmp_path: Path) -> None:
    secret = add_token(aggregator_in(tmp_path), "host1", Scope.AGENT)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if secret.encode() in path.read_bytes() or secret[5:].encode() in path.read_bytes()]


def test_a_valid_name_is_taken_once(tmp_path: Path) -> None:
    tokens = aggregator_in(tmp_path).tokens
    assert tokens.add(Token("a", Scope.AGENT, 1), b"1" * 32)
    assert not tokens.add(Token("a", Scope.READER, 2), b"2" * 32)
    assert tokens.tokens() == (Token("a", Scope.AGENT, 1),)


def test_a_revoked_token_is_worthless_also_after_its_name_was_given_again(tmp_path: Path) -> None:
    aggregator = aggregator_in(tmp_path)
    old = add_token(aggregator, "host1", Scope.AGENT)
    assert valid_token(aggregator, old)
    assert aggregator.tokens.revoke("host1", START_NS + 5)
    assert not aggregator.tokens.revoke("host1", START_NS + 6)
    assert valid_token(aggregator, old) is None
    assert aggregator.tokens.tokens()[0].revoked_ns == START_NS + 5
    new = add_token(aggregator, "host1", Scope.AGENT)
    assert valid_token(aggregator, old) is None
    assert valid_token(aggregator, new) is not None


def test_use_is_noted_once_a_minute(tmp_path: Path) -> None:
    clock = [START_NS]
    aggregator = aggregator_in(tmp_path, lambda: clock[0])
    secret = add_token(aggregator, "r", Scope.READER)
    noted = []
    for second in (0, 30, 59, 60, 100):
        clock[0] = START_NS + second * 10**9
        valid_token(aggregator, secret)
        noted.append((aggregator.tokens.tokens()[0].used_ns - START_NS) // 10**9)
    assert noted == [0, 0, 0, 60, 60]


def test_tokens_are_kept(tmp_path: Path) -> None:
    secret = add_token(aggregator_in(tmp_path), "o", Scope.OPERATOR)
    token = valid_token(aggregator_in(tmp_path), secret)
    assert token is not None
    assert (token.name, token.scope) == ("o", Scope.OPERATOR)
