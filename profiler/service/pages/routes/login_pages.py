"""Login with a token, and logout."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from profiler.service.access.authentication import valid_token
from profiler.service.access.token_registry import Scope, digest_of
from profiler.service.aggregator import Aggregator
from profiler.service.pages.links import is_own_page
from profiler.service.pages.login.forms import check_form_token, read_form
from profiler.service.pages.login.login_attempts import LoginAttempts
from profiler.service.pages.login.page_sessions import SESSION_SECONDS, PageSession, digest_of_identifier, new_identifier
from profiler.service.pages.login.visitor import COOKIE, CurrentVisitor
from profiler.service.pages.rendering import PageRenderer, is_encrypted, set_session_cookie

_NOT_VALID = "This is no valid token of a reader or an operator."
_HOME = "/hosts"


def login_pages(aggregator: Aggregator, renderer: PageRenderer, attempts: LoginAttempts) -> APIRouter:
    router = APIRouter()

    def login_form(request: Request, after: str, message: str = "", status: int = 200) -> Response:
        return renderer.page(request, "login.html", status, title="Login", after=after, message=message)

    @router.get("/login")
    def form(request: Request, after: str = _HOME) -> Response:
        return login_form(request, after)

    @router.post("/login")
    async def login(request: Request) -> Response:
        fields = await read_form(request)
        address, now_ns = request.client.host if request.client else "", aggregator.clock_ns()
        after = fields.get("after", _HOME)
        if wait_s := attempts.wait_s(address, now_ns):
            answer = login_form(request, after, f"Too many attempts. Try again in {wait_s} s.", 429)
            answer.headers["retry-after"] = str(wait_s)
            return answer
        secret = fields.get("token", "").strip()
        token = await run_in_threadpool(valid_token, aggregator, secret)
        if token is None or token.scope is Scope.AGENT:
            attempts.failed(address, now_ns)
            return login_form(request, after, _NOT_VALID, 403)
        identifier = new_identifier()
        session = PageSession(digest_of(secret), now_ns + SESSION_SECONDS * 1_000_000_000)
        await run_in_threadpool(aggregator.page_sessions.add, digest_of_identifier(identifier), session, now_ns)
        answer = RedirectResponse(after if is_own_page(after) else _HOME, 303)
        set_session_cookie(request, answer, identifier)
        return answer

    @router.post("/logout")
    async def logout(request: Request, visitor: CurrentVisitor) -> Response:
        check_form_token(visitor, await read_form(request))
        await run_in_threadpool(aggregator.page_sessions.remove, digest_of_identifier(visitor.identifier))
        answer = RedirectResponse("/login", 303)
        answer.delete_cookie(COOKIE, httponly=True, samesite="strict", secure=is_encrypted(request))
        return answer

    return router
