"""Tokens: secrets that stand for an agent or a person, of which only a digest is kept.

A secret is ``slsc_`` and 256 random bits, url-safe.  With so many bits a plain SHA-256 is enough: there is nothing to guess.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from enum import StrEnum
from typing import Protocol

from profiler.model.quick_dataclass import dataclass

SECRET_PREFIX = "slsc_"
_SECRET_BYTES = 32
_SECRET = re.compile(rf"{SECRET_PREFIX}[A-Za-z0-9_-]{{43}}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class Scope(StrEnum):
    """AGENT: one agent, which has the token's name.  READER: sees everything.  OPERATOR: that, and orders jobs and
    experiments."""

    AGENT = "agent"
    READER = "reader"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Token:
    """Times are ns since 1970.  ``used_ns``: 0 = never, else right to about a minute; ``revoked_ns``: 0 = it is valid."""

    name: str
    scope: Scope
    created_ns: int
    used_ns: int = 0
    revoked_ns: int = 0


class TokenRegistry(Protocol):
    """Every method is one transaction.  All raise ``StoreError``."""

    def add(self, token: Token, digest: bytes) -> bool:
        """False when a valid token has this name.  One that was revoked is replaced: its secret stays worthless."""

    def find(self, digest: bytes) -> Token | None:
        """The token of this digest, revoked ones included."""

    def used(self, digest: bytes, now_ns: int) -> None: ...

    def revoke(self, name: str, now_ns: int) -> bool:
        """False when no valid token has this name."""

    def tokens(self) -> tuple[Token, ...]:
        """By name."""

    def check_writable(self) -> None:
        """Raises when nothing could be written now."""


def new_secret() -> str:
    return SECRET_PREFIX + secrets.token_urlsafe(_SECRET_BYTES)


def is_secret(text: str) -> bool:
    """Whether it has the form of one."""
    return _SECRET.fullmatch(text) is not None


def digest_of(secret: str) -> bytes:
    """SHA-256, 32 bytes."""
    return hashlib.sha256(secret.encode()).digest()


def is_token_name(name: str) -> bool:
    """Letters, digits and ``_ . -``, at most 64, a letter or digit first: it stands in file names, pages and logs."""
    return _NAME.fullmatch(name) is not None
