"""Who looks at a page, and what they may do.

On the machine itself no login is needed: whoever asks from loopback, under a name of loopback and not through a proxy, is an
operator.  The name matters because a page elsewhere can make its own host name lead to 127.0.0.1; its requests then carry that
name, have no session, and end at the login page.
"""

from __future__ import annotations

import re
from typing import Annotated, TypeAlias

from fastapi import Depends, Request

from profiler.model.quick_dataclass import dataclass
from profiler.protocol.loopback import is_loopback
from profiler.service.access.token_registry import Scope
from profiler.service.aggregator import Aggregator
from profiler.service.pages.login.page_sessions import digest_of_identifier, is_identifier, new_identifier

COOKIE = "slotscope"
_PROXY_HEADERS = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")


class LoginNeeded(Exception):
    """Nobody, or somebody whose session has ended."""


class NotAllowed(Exception):
    """The message says what is missing."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """``identifier``: of the session in the cookie, new where the browser had none.  ``is_local``: without login.  ``name``: of
    the token."""

    identifier: str
    scope: Scope
    name: str
    is_local: bool

    @property
    def is_operator(self) -> bool:
        return self.scope is Scope.OPERATOR


def visitor_of(request: Request) -> Visitor:
    """``LoginNeeded`` when it is nobody that may read."""
    known: Visitor | None = getattr(request.state, "visitor", None)
    if known is not None:
        return known
    visitor = _visitor(request)
    if visitor is None:
        raise LoginNeeded
    request.state.visitor = visitor
    return visitor


def known_visitor(request: Request) -> Visitor | None:
    """None for nobody: of pages that anybody sees."""
    try:
        return visitor_of(request)
    except LoginNeeded:
        return None


def operator_of(request: Request) -> Visitor:
    """``LoginNeeded``, or ``NotAllowed`` for a reader."""
    visitor = visitor_of(request)
    if not visitor.is_operator:
        raise NotAllowed("This needs the token of an operator; you are logged in as a reader.")
    return visitor


CurrentVisitor: TypeAlias = Annotated[Visitor, Depends(visitor_of)]
CurrentOperator: TypeAlias = Annotated[Visitor, Depends(operator_of)]


def identifier_of(request: Request) -> str:
    """That in the cookie; "" when there is none."""
    identifier = request.cookies.get(COOKIE, "")
    return identifier if is_identifier(identifier) else ""


def is_local(request: Request) -> bool:
    """Whether it is asked from this machine, under its own name."""
    if request.app.state.is_behind_proxy or any(header in request.headers for header in _PROXY_HEADERS):
        return False
    client = request.client.host if request.client is not None else ""
    return is_loopback(client) and is_loopback(_without_port(request.headers.get("host", "")))


def _visitor(request: Request) -> Visitor | None:
    identifier = identifier_of(request)
    if is_local(request):
        return Visitor(identifier or new_identifier(), Scope.OPERATOR, "this machine", True)
    aggregator: Aggregator = request.app.state.aggregator
    session = aggregator.page_sessions.find(digest_of_identifier(identifier)) if identifier else None
    if session is None or session.expires_ns <= aggregator.clock_ns():
        return None
    token = aggregator.tokens.find(session.token_digest)
    if token is None or token.revoked_ns or token.scope is Scope.AGENT:
        return None
    return Visitor(identifier, token.scope, token.name, False)


def _without_port(host: str) -> str:
    """The name or address in a Host header, whatever else stands there."""
    match = re.fullmatch(r"(?:\[([0-9a-fA-F:.]+)\]|([^:\[\]]+))(?::[0-9]+)?", host)
    return (match[1] or match[2]) if match else ""
