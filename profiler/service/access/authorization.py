"""What a caller may do, as dependencies of routes: a route that takes none of these is open to everybody.

AgentName   the name of the agent whose token this is
Reader      a token of a reader or an operator
Operator    a token of an operator
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from fastapi import Depends, Request, Security
from fastapi.security import HTTPBearer
from fastapi.security.http import HTTPAuthorizationCredentials

from profiler.service.access.authentication import caller_in, not_authenticated
from profiler.service.access.token_registry import Scope, Token
from profiler.service.api.problems import Problem

# Only describes the scheme in the OpenAPI document: the header itself was read by ``Authentication``.
_BEARER = HTTPBearer(scheme_name="token", description="A token of `slotscope token create`.", auto_error=False)
_READING = (Scope.READER, Scope.OPERATOR)
_Described: TypeAlias = Annotated[HTTPAuthorizationCredentials | None, Security(_BEARER)]


def caller_of(request: Request) -> Token:
    """Whose valid token came with the request.  ``Problem`` 401."""
    return _known(caller_in(request.scope))


def check_reader(caller: Token | None) -> None:
    """``Problem`` 401 or 403 unless the caller may see everything."""
    _within(_known(caller), _READING)


def _agent_name(request: Request, _: _Described) -> str:
    return _within(caller_of(request), (Scope.AGENT,)).name


def _reader(request: Request, _: _Described) -> Token:
    return _within(caller_of(request), _READING)


def _operator(request: Request, _: _Described) -> Token:
    return _within(caller_of(request), (Scope.OPERATOR,))


def _open_reader(request: Request, _: _Described) -> Token | None:
    return caller_in(request.scope)


def _known(caller: Token | None) -> Token:
    if caller is None:
        raise not_authenticated()
    return caller


def _within(caller: Token, scopes: tuple[Scope, ...]) -> Token:
    if caller.scope not in scopes:
        needed = " or ".join(f"`{scope}`" for scope in scopes)
        raise Problem(403, "Not allowed", f"this needs a token of the scope {needed}, and yours is of `{caller.scope}`")
    return caller


AgentName: TypeAlias = Annotated[str, Depends(_agent_name)]
Reader: TypeAlias = Annotated[Token, Depends(_reader)]
Operator: TypeAlias = Annotated[Token, Depends(_operator)]
OpenReader: TypeAlias = Annotated[Token | None, Depends(_open_reader)]
