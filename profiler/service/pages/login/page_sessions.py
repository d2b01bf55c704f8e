"""Sessions of people who logged in to the pages: random identifiers in a cookie, of which only a digest is kept."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from typing import Protocol

from profiler.model.quick_dataclass import dataclass

SESSION_SECONDS = 12 * 3600
_IDENTIFIER_BYTES = 32
_IDENTIFIER = re.compile(r"[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True)
class PageSession:
    """``token_digest``: of the token that was pasted; the session ends with it.  ``expires_ns``: ns since 1970."""

    token_digest: bytes
    expires_ns: int


class PageSessionRegistry(Protocol):
    """Every method is one transaction.  All raise ``StoreError``."""

    def add(self, digest: bytes, session: PageSession, now_ns: int) -> None:
        """Those that have expired by now go."""

    def find(self, digest: bytes) -> PageSession | None:
        """Expired ones included."""

    def remove(self, digest: bytes) -> None:
        """Silent when there is none."""


def new_identifier() -> str:
    """256 random bits, url-safe."""
    return secrets.token_urlsafe(_IDENTIFIER_BYTES)


def is_identifier(text: str) -> bool:
    """Whether it has the form of one."""
    return _IDENTIFIER.fullmatch(text) is not None


def digest_of_identifier(identifier: str) -> bytes:
    """SHA-256, 32 bytes: with 256 random bits there is nothing to guess."""
    return hashlib.sha256(identifier.encode()).digest()


def form_token(identifier: str) -> str:
    """What every form of the session's pages carries: only who can read the pages knows it."""
    return hmac.new(identifier.encode(), b"slotscope form", hashlib.sha256).hexdigest()


def is_form_token(identifier: str, token: str) -> bool:
    return hmac.compare_digest(form_token(identifier).encode(), token.encode("utf-8", "replace"))
