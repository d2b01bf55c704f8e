"""Who may look at pages, who may change something, and who cannot pretend to."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from profiler.protocol.job import JobState
from profiler.service.access.token_registry import Scope, new_secret
from profiler.service.aggregator import Aggregator
from profiler.service.api.settings import ServiceSettings
from profiler.service.pages.login.page_sessions import SESSION_SECONDS
from support.aggregators import SettableClock, add_token, aggregator_in, attach_order
from support.asked_pages import heading, local_visitor, logged_in, remote_visitor

PAGES = ("/", "/hosts", "/hosts/x", "/jobs", "/jobs/x", "/captures", "/captures/x", "/captures/x/y", "/experiments", "/compare")
DOWNLOADS = ("/captures/x/runs/0.capture", "/captures/x/y/report.json", "/compare/comparison.csv?baseline=x&candidate=y")


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock()


@pytest.fixture
def aggregator(tmp_path: Path, clock: SettableClock) -> Aggregator:
    made = aggregator_in(tmp_path, clock)
    made.jobs.add("alpha", attach_order("job-1"), clock.now_ns)
    return made


def state(aggregator: Aggregator) -> JobState:
    job = aggregator.jobs.job("job-1")
    assert job is not None
    return job.report.state


def test_nobody_sees_anything_without_a_token(aggregator: Aggregator) -> None:
    visitor = remote_visitor(aggregator)
    for path in (*PAGES, *DOWNLOADS):
        answered = visitor.get(path)
        assert answered.status_code == 303, path
        assert answered.headers["location"].startswith("/login?after=%2F"), path
    assert visitor.get("/login").status_code == 200
    assert visitor.get("/static/pages.css").status_code == 200


def test_a_token_is_pasted_once(aggregator: Aggregator) -> None:
    secret = add_token(aggregator, "alice", Scope.READER)
    visitor = remote_visitor(aggregator)
    answered = visitor.submit("/login", {"token": f" {secret}\n", "after": "/captures?variant=base"})
    assert (answered.status_code, answered.headers["location"]) == (303, "/captures?variant=base")
    cookie = answered.headers["set-cookie"]
    assert {"HttpOnly", "Secure", "Path=/", f"Max-Age={SESSION_SECONDS}"} <= set(cookie.split("; "))
    assert "samesite=strict" in cookie.lower()
    assert secret not in cookie
    shown = visitor.get("/hosts")
    assert shown.status_code == 200
    assert "alice</bdi> (reader)" in shown.text


def test_the_session_is_kept_as_a_digest(aggregator: Aggregator, tmp_path: Path) -> None:
    visitor = logged_in(aggregator, Scope.READER)
    (identifier,) = visitor.cookies.values()
    assert len(identifier) == 43
    dump = "\n".join(sqlite3.connect(tmp_path / "service.sqlite").iterdump())
    assert "page_sessions" in dump
    assert identifier not in dump
    assert identifier.encode().hex() not in dump.lower()


def test_a_session_ends_by_itself_with_its_token_and_at_logout(aggregator: Aggregator, clock: SettableClock) -> None:
    visitor = logged_in(aggregator, Scope.READER)
    clock.pass_s(SESSION_SECONDS - 1)
    assert visitor.get("/hosts").status_code == 200
    clock.pass_s(1)
    assert visitor.get("/hosts").status_code == 303

    operator = logged_in(aggregator, Scope.OPERATOR)
    assert operator.get("/hosts").status_code == 200
    aggregator.tokens.revoke("a-operator", clock.now_ns)
    assert operator.get("/hosts").status_code == 303

    leaving = logged_in(aggregator, Scope.OPERATOR)
    before = dict(leaving.cookies)
    assert leaving.submit("/logout", {"form_token": leaving.form_token("/hosts")}).status_code == 303
    leaving.cookies = before
    assert leaving.get("/hosts").status_code == 303


def test_what_is_no_token_of_a_person_lets_nobody_in(aggregator: Aggregator, clock: SettableClock) -> None:
    agent = add_token(aggregator, "node", Scope.AGENT)
    revoked = add_token(aggregator, "gone", Scope.OPERATOR)
    aggregator.tokens.revoke("gone", clock.now_ns)
    visitor = remote_visitor(aggregator)
    for token in (agent, revoked, new_secret(), "", "x" * 5000, "' OR 1=1 --"):
        clock.pass_s(60)
        answered = visitor.submit("/login", {"token": token})
        assert (answered.status_code, heading(answered)) == (403, "Login")
        assert "set-cookie" not in answered.headers
        assert token == "" or token not in answered.text
    assert visitor.get("/hosts").status_code == 303


def test_attempts_are_limited_and_then_possible_again(aggregator: Aggregator, clock: SettableClock) -> None:
    secret = add_token(aggregator, "alice", Scope.READER)
    visitor = remote_visitor(aggregator)
    statuses = [visitor.submit("/login", {"token": new_secret()}).status_code for _ in range(6)]
    assert statuses == [403] * 5 + [429]
    refused = visitor.submit("/login", {"token": secret})
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "60")
    # Others are not kept out by it.
    other = remote_visitor(aggregator)
    other.app = visitor.app.at("198.51.100.3")
    assert other.submit("/login", {"token": secret}).status_code == 303
    clock.pass_s(60)
    assert visitor.submit("/login", {"token": secret}).status_code == 303


@pytest.mark.parametrize(
    "after", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/a\r\nb: c"]
)
def test_login_leads_nowhere_else(aggregator: Aggregator, after: str) -> None:
    secret = add_token(aggregator, "alice", Scope.READER)
    answered = remote_visitor(aggregator).submit("/login", {"token": secret, "after": after})
    assert (answered.status_code, answered.headers["location"]) == (303, "/hosts")


def test_only_operators_cancel_and_only_from_a_page_of_their_session(aggregator: Aggregator) -> None:
    reader, operator = logged_in(aggregator, Scope.READER), logged_in(aggregator, Scope.OPERATOR)
    path = "/jobs/job-1/cancel"
    assert "cancel" not in reader.get("/jobs").text.lower().replace("cancelled", "")
    token, of_reader = operator.form_token("/jobs"), reader.form_token("/jobs")
    refused = [
        reader.submit(path, {"form_token": of_reader}),
        operator.submit(path, {}),
        operator.submit(path, {"form_token": of_reader}),
        operator.submit(path, {"form_token": token}, origin="https://evil.example"),
        operator.submit(path, {"form_token": token}, origin="null"),
        operator.submit(path, {"form_token": token, "more": "x" * 20_000}),
    ]
    assert [answered.status_code for answered in refused] == [403] * 6
    assert operator.get(path).status_code == 405
    assert state(aggregator) is JobState.WAITING
    assert remote_visitor(aggregator).submit(path, {"form_token": token}).status_code == 303
    assert state(aggregator) is JobState.WAITING
    assert operator.submit(path, {"form_token": token}).headers["location"] == "/jobs/job-1"
    assert state(aggregator) is JobState.CANCELLED
    assert operator.submit("/jobs/none/cancel", {"form_token": token}).status_code == 404


def test_forms_without_an_origin_are_refused(aggregator: Aggregator) -> None:
    visitor = local_visitor(aggregator)
    token = visitor.form_token("/jobs")
    cookies = "; ".join(f"{name}={value}" for name, value in visitor.cookies.items())
    for headers in (
        {},
        {"origin": ""},
        {"origin": "null"},
        {"origin": "localhost:8640"},
        {"referer": "http://localhost:8640/"},
    ):
        given = {"host": visitor.host, "cookie": cookies, **headers}
        answered = visitor.app.send("POST", "/jobs/job-1/cancel", content=f"form_token={token}".encode(), headers=given)
        assert answered.status_code == 403, headers
    assert state(aggregator) is JobState.WAITING


def test_on_the_machine_itself_no_login_is_needed_but_forms_are_checked(aggregator: Aggregator) -> None:
    visitor = local_visitor(aggregator)
    token = visitor.form_token("/jobs")
    assert visitor.submit("/jobs/job-1/cancel", {"form_token": "0" * 64}).status_code == 403
    assert visitor.submit("/jobs/job-1/cancel", {"form_token": token}, origin="http://127.0.0.1:9999").status_code == 403
    assert state(aggregator) is JobState.WAITING
    assert visitor.submit("/jobs/job-1/cancel", {"form_token": token}).status_code == 303
    assert state(aggregator) is JobState.CANCELLED


@pytest.mark.parametrize("host", ["localhost", "localhost:8640", "127.0.0.1:8640", "127.8.9.1", "[::1]:8640"])
def test_names_of_loopback(aggregator: Aggregator, host: str) -> None:
    assert local_visitor(aggregator, host=host).get("/hosts").status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8640", "localhost.evil.example", "127.0.0.1.evil.example", "", "[", "10.0.0.1"]
)
def test_a_name_that_was_made_to_lead_here_shows_nothing(aggregator: Aggregator, host: str) -> None:
    """What a page elsewhere can do: its own name resolved to 127.0.0.1."""
    visitor = local_visitor(aggregator, host=host)
    assert visitor.get("/hosts").status_code == 303
    assert visitor.submit("/jobs/job-1/cancel", {}, origin=f"http://{host or 'x'}").status_code in (303, 403)
    assert state(aggregator) is JobState.WAITING


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "Via"])
def test_who_comes_through_a_proxy_is_not_on_this_machine(aggregator: Aggregator, header: str) -> None:
    assert local_visitor(aggregator).get("/hosts", **{header: "192.0.2.1"}).status_code == 303
    assert local_visitor(aggregator, ServiceSettings(is_behind_proxy=True)).get("/hosts").status_code == 303


def test_tokens_are_in_no_page(aggregator: Aggregator) -> None:
    secret = add_token(aggregator, "alice", Scope.OPERATOR)
    visitor = remote_visitor(aggregator)
    pages = [visitor.submit("/login", {"token": secret}), *(visitor.get(path) for path in PAGES)]
    assert all(not re.search("slsc_[A-Za-z0-9_-]{43}", page.text) for page in pages)
