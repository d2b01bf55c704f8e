"""The aggregator's pages in a browser: they load, they are quiet, they ask nobody else, and their numbers are those of the
command line; hostile names stay text."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from profiler.experiment.experiment_session import DOCUMENT, encode_record
from profiler.model.experiment import Design, ExperimentRecord, VariantFacts
from profiler.service.access.token_registry import Scope
from profiler.service.aggregator import open_aggregator
from support.aggregators import add_token
from support.chromium import Chromium, Visit
from support.page_data import LONG, MARKUP, QUOTES, TURNED, add_hostile_captures, copy_demo_store, fill
from support.served_pages import ServedPages, served

FIXTURES = Path(__file__).parent.parent / "fixtures"
TABLES = """[...document.querySelectorAll("table")].map(table => ({
    caption: table.caption.textContent,
    rows: [...table.tBodies[0].rows].map(row => [...row.cells].map(cell => cell.textContent.trim())),
}))"""
RECORD = ExperimentRecord(
    name="epochs",
    design=Design.INTERLEAVED,
    runs=4,
    seed=1,
    baseline="portable",
    command=("{binary}",),
    variants=(VariantFacts("portable", note="as released"), VariantFacts("sha-ni", note="with SHA instructions")),
    phase="^phase::",
)


@dataclass(frozen=True)
class Filled:
    """``session``: the demonstration's; ``odd``: the one of hostile names."""

    pages: ServedPages
    store: Path
    session: str
    odd: str


@dataclass(frozen=True)
class Said:
    """What the command line says on the same store, as JSON."""

    report: str
    comparison: str
    experiment: str


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("chromium is not installed")
    with Chromium(program, tmp_path_factory.mktemp("chromium")) as chromium:
        yield chromium


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    store = tmp_path_factory.mktemp("served") / "store"
    copy_demo_store(FIXTURES, store)
    aggregator = open_aggregator(store, create=True)
    (session,) = (each.name for each in aggregator.store.sessions())
    aggregator.store.put_document(session, DOCUMENT, encode_record(RECORD))
    odd = add_hostile_captures(aggregator.store)
    fill(aggregator, time.time_ns())
    with served(store, store.with_name("log")) as pages:
        yield Filled(pages, store, session, odd)


@pytest.fixture(scope="module")
def said(filled: Filled) -> Said:
    session = filled.session
    return Said(
        report=command_line(filled, "report", f"{session}/portable"),
        comparison=command_line(filled, "compare", "portable", "sha-ni"),
        experiment=command_line(filled, "experiment", "show", session),
    )


def command_line(filled: Filled, *arguments: str) -> str:
    command = [sys.executable, "-m", "profiler.cli.main", "--store", str(filled.store), *arguments, "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=True)
    return done.stdout


def checked(browser: Chromium, pages: ServedPages, path: str, status: int = 200) -> Visit:
    """The page at ``path``, which must be whole, quiet, and made of this server alone."""
    visit = browser.visit(pages.url + path)
    assert visit.status == status, path
    # The browser itself notes a page's own status when it is an error.
    assert [line for line in visit.console if "status of" not in line or path not in line] == [], path
    assert all(url.startswith(f"{pages.url}/") for url in visit.requests), visit.requests
    assert browser.evaluate("typeof window.hurt") == "undefined"
    assert browser.evaluate("document.querySelectorAll('h1').length") == 1
    return visit


def table(browser: Chromium, caption: str) -> list[list[str]]:
    (found,) = [each["rows"] for each in browser.evaluate(TABLES) if each["caption"] == caption]
    rows: list[list[str]] = found
    return rows


def all_paths(filled: Filled) -> list[str]:
    session = filled.session
    return [
        "/",
        "/hosts",
        "/hosts/alpha",
        "/hosts/hostile",
        "/jobs",
        "/jobs?state=failed",
        "/jobs/job-running",
        "/jobs/hostile-0",
        "/captures",
        "/captures?variant=portable",
        f"/captures/{session}",
        f"/captures/{filled.odd}",
        f"/captures/{session}/portable",
        f"/captures/{filled.odd}/odd?by=function",
        "/experiments",
        f"/experiments/{session}",
        "/compare",
        f"/compare?baseline=portable&candidate={session}/sha-ni",
    ]


def test_every_page_loads_is_quiet_and_asks_nobody_else(browser: Chromium, filled: Filled) -> None:
    for path in all_paths(filled):
        checked(browser, filled.pages, path)
    for path in ("/nothing", "/jobs/nothing", "/captures/nothing", "/experiments/nothing", "/hosts/nothing"):
        checked(browser, filled.pages, path, 404)


@pytest.mark.parametrize("width", [1280, 400])
def test_no_page_is_wider_than_the_window(browser: Chromium, filled: Filled, width: int) -> None:
    """Wide tables scroll by themselves: names of 10,000 characters included."""
    browser.set_width(width)
    for path in all_paths(filled):
        checked(browser, filled.pages, path)
        assert browser.evaluate("document.documentElement.scrollWidth") <= width, path


def test_everything_has_a_name_for_who_does_not_see_it(browser: Chromium, filled: Filled) -> None:
    unnamed = """[...document.querySelectorAll("input:not([type=hidden]), select, button, table, nav")].filter(element =>
        !(element.labels?.length || element.textContent.trim() && element.matches("button") || element.caption?.textContent
          || element.getAttribute("aria-label"))).map(element => element.outerHTML)"""
    for path in all_paths(filled):
        checked(browser, filled.pages, path)
        assert browser.evaluate(unnamed) == [], path
        assert browser.evaluate("[...document.querySelectorAll('th')].every(cell => cell.scope)"), path
        assert browser.evaluate("document.documentElement.lang") == "en"


def test_a_report_has_the_numbers_of_the_command_line(browser: Chromium, filled: Filled, said: Said) -> None:
    document = json.loads(said.report)
    checked(browser, filled.pages, f"/captures/{filled.session}/portable")
    shown = table(browser, "Where the time went, by category")
    runs = document["quality"]["runs"]
    expected = [
        [
            row["name"],
            f"{row['self'] / runs / 1e6:,.1f}",
            f"{row['total'] / runs / 1e6:,.1f}",
            f"{100 * row['share']:.1f} %",
            f"{100 * row['share_interval'][0]:.1f} to {100 * row['share_interval'][1]:.1f} %",
            f"{row['samples']:,}",
        ]
        for row in document["rows"]
    ]
    assert len(expected) >= 8
    assert [row for row in shown if row[0] not in ("other", "total")] == expected
    assert shown[-1][1] == f"{document['total'] / runs / 1e6:,.1f}"


def test_a_comparison_has_the_numbers_of_the_command_line(browser: Chromium, filled: Filled, said: Said) -> None:
    (candidate,) = json.loads(said.comparison)["candidates"]
    checked(browser, filled.pages, "/compare?baseline=portable&candidate=sha-ni")
    rows = table(browser, "sha-ni against portable, by category")
    check_comparison(rows, [*candidate["rows"], {**candidate["total"], "name": "total"}])


def test_an_experiment_has_the_numbers_of_the_command_line(browser: Chromium, filled: Filled, said: Said) -> None:
    (condition,) = json.loads(said.experiment)["conditions"]
    (candidate,) = condition["candidates"]
    checked(browser, filled.pages, f"/experiments/{filled.session}")
    rows = table(browser, "sha-ni against portable, by category")
    check_comparison(rows, [*candidate["rows"], {**candidate["total"], "name": "total"}])
    assert [row[:2] for row in table(browser, "Variants")] == [
        ["portable (baseline)", "as released"],
        ["sha-ni", "with SHA instructions"],
    ]


def check_comparison(shown: Sequence[Sequence[str]], said: Sequence[dict[str, Any]]) -> None:
    words = {"faster": "faster", "slower": "slower", "equivalent": "no difference", "undecided": "inside noise"}
    assert [row[0] for row in shown] == [row["name"] for row in said]
    assert "faster" in [row["verdict"] for row in said]
    for cells, row in zip(shown, said, strict=True):
        assert cells[1:3] == [f"{row[arm] / 1e6:,.1f}" for arm in ("baseline", "candidate")]
        for text, value in zip(numbers(" ".join(cells[3:5])), (row["delta"], *row["delta_interval"]), strict=True):
            decimals = len(text.partition(".")[2])
            # Rounded, perhaps to tens or hundreds of ms.
            tolerance = 0.51 * 10.0**-decimals if decimals else 5.1
            assert abs(float(text) - value / 1e6) <= tolerance
        assert cells[7].startswith(words[row["verdict"]])


def numbers(text: str) -> list[str]:
    return re.findall(r"[-+]?[0-9]+(?:\.[0-9]+)?", text.replace(",", "") if "[" not in text else text)


def test_downloads_are_what_the_command_line_writes(filled: Filled, said: Said) -> None:
    by_path = {
        f"/captures/{filled.session}/portable/report.json": said.report,
        "/compare/comparison.json?baseline=portable&candidate=sha-ni": said.comparison,
        f"/experiments/{filled.session}/result.json": said.experiment,
    }
    for path, text in by_path.items():
        answered = httpx.get(filled.pages.url + path)
        assert answered.text == text, path
        assert re.fullmatch(r'attachment; filename="[\w.-]+\.json"', answered.headers["content-disposition"])


def test_hostile_names_stay_text(browser: Chromium, filled: Filled) -> None:
    checked(browser, filled.pages, f"/captures/{filled.odd}/odd?by=function")
    names = [row[0] for row in table(browser, "Where the time went, by function")]
    assert {MARKUP.replace("/", "|"), QUOTES} <= set(names)
    assert TURNED.replace("\u202e", "\\u202e").replace("\u2066", "\\u2066") in names
    assert "a\\x00b\\x1b[31mc\\x0d\\x0aSet-Cookie: hurt=1\\x7f" in names
    assert "bytes\\xff\\x80end" in names
    (shortened,) = [name for name in names if name.startswith("xxx")]
    assert len(shortened) < 200 < len(LONG)
    for path in ("/hosts", "/hosts/hostile", "/jobs", "/jobs/hostile-0", "/captures"):
        checked(browser, filled.pages, path)
        assert browser.evaluate("document.querySelectorAll('img, svg, main script').length") == 0, path


def test_an_operator_cancels_a_job_in_the_browser(browser: Chromium, filled: Filled) -> None:
    checked(browser, filled.pages, "/jobs/job-waiting")
    visit = browser.click("form[action='/jobs/job-waiting/cancel'] button")
    assert (visit.status, visit.console) == (200, [])
    assert browser.evaluate("document.querySelector('.state').textContent") == "cancelled"
    job = open_aggregator(filled.store, create=False).jobs.job("job-waiting")
    assert job is not None
    assert job.report.detail == "cancelled by this machine"


def test_progress_is_brought_up_to_date_by_itself(browser: Chromium, filled: Filled) -> None:
    """The script takes what is new without leaving the page."""
    checked(browser, filled.pages, "/jobs/job-running")
    browser.evaluate("window.same = true")
    aggregator = open_aggregator(filled.store, create=False)
    aggregator.jobs.cancel("job-running", "ended meanwhile", time.time_ns())
    shown = """new Promise(resolve => new MutationObserver(() => resolve(document.querySelector(".state").textContent))
        .observe(document.querySelector("[data-progress]"), {childList: true, subtree: true}))"""
    assert browser.evaluate(shown) == "cancelled"
    assert browser.evaluate("window.same") is True


def test_login_and_logout(browser: Chromium, tmp_path: Path) -> None:
    """Through a proxy, everybody needs a token."""
    aggregator = open_aggregator(tmp_path / "store", create=True)
    secret = add_token(aggregator, "alice", Scope.READER)
    with served(tmp_path / "store", tmp_path / "log", "--behind-proxy") as pages:
        browser.visit(f"{pages.url}/captures?variant=base")
        assert browser.evaluate("location.pathname") == "/login"
        browser.evaluate(f"document.querySelector('[name=token]').value = {secret!r}")
        visit = browser.click("form.login button")
        assert (visit.status, visit.console) == (200, [])
        assert browser.evaluate("location.pathname + location.search") == "/captures?variant=base"
        assert browser.evaluate("document.cookie") == ""  # out of reach of scripts
        browser.click("form.visitor button")
        assert browser.evaluate("location.pathname") == "/login"
        browser.visit(f"{pages.url}/hosts")
        assert browser.evaluate("location.pathname") == "/login"
    assert secret not in pages.log.read_text()
