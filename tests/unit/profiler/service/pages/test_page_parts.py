"""Addresses, file names in headers, and how often a token may be guessed."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from profiler.service.pages.downloads import download
from profiler.service.pages.links import arm_link, host_link, is_own_page, with_query
from profiler.service.pages.login.login_attempts import AttemptLimits, LoginAttempts
from profiler.service.pages.login.page_sessions import form_token, is_form_token, is_identifier, new_identifier
from support.page_data import HOSTILE, SECOND_NS


@pytest.mark.parametrize("name", [*HOSTILE, "a/b", "..", "a?b#c", "50%"])
def test_foreign_names_stay_one_part_of_an_address(name: str) -> None:
    address = host_link(name)
    assert re.fullmatch(r"/hosts/[A-Za-z0-9%@,+._~-]*", address)
    assert unquote(address, errors="surrogateescape") == f"/hosts/{name}"
    assert arm_link("s1", name).count("/") == 3
    assert parse_qs(urlsplit(with_query("/jobs", agent=name)).query, errors="surrogateescape") == {"agent": [name]}


def test_empty_fields_are_left_out() -> None:
    assert with_query("/jobs", agent="", page=None) == "/jobs"
    assert with_query("/jobs", agent="a b", page=2) == "/jobs?agent=a+b&page=2"


def test_only_own_pages_are_gone_to() -> None:
    assert is_own_page("/captures?variant=a%2Fb")
    for address in ("", "hosts", "//evil", "/\\evil", "https://evil", "/a\\..", "/a\nb", "javascript:x"):
        assert not is_own_page(address), address


@pytest.mark.parametrize("name", [*HOSTILE, "", "...", "a\r\nSet-Cookie: x=1", 'x"; filename="y'])
def test_a_file_name_cannot_leave_its_header(name: str) -> None:
    header = download(b"", "text/csv", name, ".csv").headers["content-disposition"]
    assert re.fullmatch(r'attachment; filename="[A-Za-z0-9_][A-Za-z0-9._-]{0,80}\.csv"', header)


def test_attempts_of_one_address_and_of_all() -> None:
    attempts = LoginAttempts(AttemptLimits(seconds=60, of_one=2, of_all=4, addresses=10))
    for second in (0, 10):
        assert attempts.wait_s("a", second * SECOND_NS) == 0
        attempts.failed("a", second * SECOND_NS)
    assert [attempts.wait_s("a", second * SECOND_NS) for second in (10, 30, 59, 60)] == [50, 30, 1, 0]
    assert attempts.wait_s("b", 10 * SECOND_NS) == 0
    attempts.failed("b", 20 * SECOND_NS)
    attempts.failed("c", 20 * SECOND_NS)
    assert attempts.wait_s("d", 20 * SECOND_NS) == 40  # the first of four was at 0
    assert attempts.wait_s("d", 60 * SECOND_NS) == 0


def test_addresses_are_not_remembered_without_end() -> None:
    attempts = LoginAttempts(AttemptLimits(of_one=1, of_all=10_000, addresses=3))
    for number in range(10):
        attempts.failed(f"10.0.0.{number}", 0)
    assert [attempts.wait_s(f"10.0.0.{number}", 0) for number in (0, 6, 7, 9)] == [0, 0, 60, 60]


def test_identifiers_and_the_tokens_of_their_forms() -> None:
    first, second = new_identifier(), new_identifier()
    assert first != second
    assert is_identifier(first)
    assert not any(is_identifier(text) for text in ("", first[1:], first + "a", first[:-1] + "=", "\udcff" * 43))
    assert is_form_token(first, form_token(first))
    assert not any(is_form_token(first, token) for token in (form_token(second), "", "\udcff", form_token(first).upper()))
