"""Errors are pages, say nothing of the inside, and programs are answered in their own way."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.service import pages
from profiler.service.aggregator import Aggregator
from profiler.service.api.settings import ServiceSettings
from profiler.service.pages.analysis.analyses import AnalysisLimits
from profiler.service.pages.pages_app import PageLimits, pages_app
from profiler.store.records import SessionStart
from support.aggregators import AskedApp, aggregator_in
from support.asked_pages import Visitor, heading, local_visitor
from support.small_captures import small_capture, small_info


@pytest.fixture
def aggregator(tmp_path: Path) -> Aggregator:
    return aggregator_in(tmp_path)


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/static/../pages_app.py",
        "/static/x",
        "/jobs/none",
        "/hosts/none",
        "/captures/none",
        "/experiments/none",
        "/captures/none/runs/1.capture",
        "/captures/%00/%ff",
        "/%3Cscript%3E",
    ],
)
def test_what_there_is_not_is_said_on_a_page(aggregator: Aggregator, path: str) -> None:
    answered = local_visitor(aggregator).get(path)
    assert answered.status_code in (400, 404)
    assert answered.headers["content-type"] == "text/html; charset=utf-8"
    assert "<nav" in answered.text
    assert "<script" not in answered.text


def test_a_program_is_answered_with_a_problem(aggregator: Aggregator) -> None:
    answered = local_visitor(aggregator).get("/nothing", accept="application/json")
    assert (answered.status_code, answered.headers["content-type"]) == (404, "application/problem+json")


@pytest.mark.parametrize(
    "path", ["/captures?page=x", "/compare?by=nothing", "/compare?rows=7", "/compare?per=-1", "/captures/x/runs/y.capture"]
)
def test_addresses_that_no_page_has(aggregator: Aggregator, path: str) -> None:
    answered = local_visitor(aggregator).get(path)
    assert answered.status_code in (400, 404)
    assert answered.headers["content-type"].startswith("text/html")


def test_a_wrong_method_is_a_page(aggregator: Aggregator) -> None:
    answered = local_visitor(aggregator).submit("/hosts", {})
    assert (answered.status_code, heading(answered)) == (405, "Method Not Allowed")


def test_a_fault_is_a_page_without_its_cause(aggregator: Aggregator, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("with a secret in it")

    monkeypatch.setattr(type(aggregator.agents), "agents", broken)
    answered = local_visitor(aggregator).get("/hosts")
    assert (answered.status_code, heading(answered)) == (500, "Internal Server Error")
    assert "secret" not in answered.text
    assert "Traceback" not in answered.text
    assert "default-src 'none'" in answered.headers["content-security-policy"]


def test_a_store_that_cannot_be_used_is_a_page(aggregator: Aggregator, tmp_path: Path) -> None:
    visitor = local_visitor(aggregator)
    (tmp_path / "service.sqlite").write_bytes(b"not a database, and long enough to be read as the head of one" * 4)
    answered = visitor.get("/jobs")
    assert (answered.status_code, answered.headers["retry-after"]) == (503, "5")
    assert str(tmp_path) not in answered.text


def test_every_page_forbids_what_it_does_not_need(aggregator: Aggregator) -> None:
    visitor = local_visitor(aggregator)
    for path in ("/hosts", "/jobs", "/captures", "/compare", "/login", "/nothing", "/static/pages.css", "/static/progress.js"):
        headers = visitor.get(path).headers
        policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
        assert policy.pop("default-src") == "'none'", path
        assert policy.pop("base-uri") == policy.pop("frame-ancestors") == "'none'"
        assert set(policy.values()) == {"'self'"}
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cache-control"] == ("max-age=300" if path.startswith("/static") else "no-store")


def test_pages_hold_no_script_or_style_of_their_own(aggregator: Aggregator) -> None:
    templates = list((Path(pages.__file__).parent / "templates").glob("*.html"))
    assert "base.html" in {template.name for template in templates}
    for template in templates:
        text = template.read_text()
        assert "<style" not in text, template
        assert "style=" not in text, template
        assert " on" not in [attribute[:3] for attribute in text.split('"')], template
        assert text.count("<script") == (1 if template.name == "base.html" else 0), template
        assert "| safe" not in text, template
        assert "|safe" not in text, template


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (AnalysisLimits(at_once=0, waiting=0), "As many analyses are being worked out as this server allows."),
        (AnalysisLimits(seconds=0.001), "The analysis took longer than a page may."),
    ],
)
def test_a_server_that_is_busy_says_so(aggregator: Aggregator, limits: AnalysisLimits, words: str) -> None:
    store = aggregator.store
    session = store.begin_session(SessionStart("2026-12-01T10:00:00+00:00", "n", ("epoch",), 0, has_rounds=False))
    store.add(small_capture({"main/work": 9}, small_info("base", session=session)))
    app = pages_app(aggregator, ServiceSettings(), PageLimits(limits))
    for path in (f"/captures/{session}/base", f"/captures/{session}/base/report.csv", "/compare?baseline=base&candidate=base"):
        answered = Visitor(AskedApp(app, "127.0.0.1"), "localhost").get(path)
        assert (answered.status_code, heading(answered)) == (503, "Service Unavailable"), path
        assert words in answered.text
        assert "content-disposition" not in answered.headers
