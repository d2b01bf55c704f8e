"""Analyses for pages: real processes, few at once, ended at their time, their answers kept within bounds."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from profiler.errors import UsageError
from profiler.service.pages.analysis.analyses import (
    Analyses,
    AnalysisBusy,
    AnalysisLimits,
    AnalysisRefused,
    AnalysisTooLong,
)
from profiler.service.pages.analysis.analysis_order import AnalysisOrder, Content, Format
from profiler.service.pages.analysis.answer_cache import AnswerCache
from profiler.store.records import SessionStart, SessionState
from profiler.store.selectors import resolve_stored
from profiler.store.store import Store, open_store
from support.small_captures import small_capture, small_info


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """One session of base (60 ms of hash, 40 of tree) and cand (30, 40), two runs each."""
    opened = open_store(tmp_path, create=True)
    session = opened.begin_session(SessionStart("2026-12-01T10:00:00+00:00", "node-1", ("epoch",), 0, has_rounds=True))
    for round_number in range(2):
        for name, hashing in (("base", 60), ("cand", 30)):
            info = small_info(name, round_number, session=session)
            opened.add(small_capture({"main/hash": hashing, "main/tree": 40}, info))
        opened.finish_round(session, round_number)
    opened.finish_session(session, SessionState.FINISHED)
    return opened


def order(
    store: Store, content: Content = Content.REPORT, form: Format = Format.JSON, names: tuple[str, ...] = ("base",)
) -> AnalysisOrder:
    return AnalysisOrder(content, form, str(store.directory), names, by="function")


def test_reports_comparisons_and_stacks_by_hand_arithmetic(store: Store) -> None:
    async def answers() -> list[bytes]:
        analyses = Analyses(AnalysisLimits())
        both = ("base", "cand")
        orders = [order(store), order(store, Content.COMPARISON, names=both), order(store, Content.STACKS, Format.SPEEDSCOPE)]
        return [await answer for answer in [asyncio.ensure_future(analyses.answer(each, ())) for each in orders]]

    report, comparison, stacks = (json.loads(answer) for answer in asyncio.run(answers()))
    assert {row["name"]: row["self"] for row in report["rows"]} == {"hash": 120_000_000, "tree": 80_000_000, "main": 0}
    (candidate,) = comparison["candidates"]
    assert {row["name"]: row["delta"] for row in candidate["rows"]} == {"hash": -30_000_000, "tree": 0, "(rest)": 0}
    assert stacks["profiles"][0]["endValue"] == 100_000_000


def test_the_same_question_is_worked_out_once(store: Store) -> None:
    """Also by those who ask while it is in work; when captures or debug files came, it is asked anew."""

    async def ask() -> tuple[bytes, bytes]:
        analyses = Analyses(AnalysisLimits(at_once=1, waiting=0))
        await asyncio.gather(*(analyses.answer(order(store), ("a",)) for _ in range(20)))
        first = await analyses.answer(order(store), ("a",))
        for blob in sorted(store.directory.glob("captures/*/*")):
            blob.unlink()
        kept = await analyses.answer(order(store), ("a",))
        with pytest.raises(AnalysisRefused):
            await analyses.answer(order(store), ("a", "b"))
        (store.directory / "debug/.build-id/ab").mkdir(parents=True)
        with pytest.raises(AnalysisRefused):
            await analyses.answer(order(store), ("a",))
        return first, kept

    first, kept = asyncio.run(ask())
    assert first == kept


def test_what_cannot_be_analysed_is_one_line(store: Store) -> None:
    async def refusals() -> list[tuple[str, bool]]:
        analyses, found = Analyses(AnalysisLimits()), []
        for asked in (order(store, names=("nothing",)), replace(order(store), phase="nothing_of_this_name")):
            with pytest.raises(AnalysisRefused) as refused:
                await analyses.answer(asked, ())
            found.append((str(refused.value), refused.value.is_question_wrong))
        return found

    (unknown, is_wrong), (no_phase, is_wrong_too) = asyncio.run(refusals())
    assert (unknown, is_wrong) == ("'nothing': no session and no variant of this name in the store", True)
    assert no_phase.startswith("base: no sample matches the phase 'nothing_of_this_name'")
    assert not is_wrong_too


def test_arms_are_named_as_on_the_command_line(store: Store) -> None:
    session = store.sessions()[0].name
    for name in ("base", f"{session}/base", "last/base", "variant:base", f"session:{session}/base"):
        found = resolve_stored(name, store)
        assert (found.label, [run.key.number for run in found.runs]) == ("base", [0, 2]), name
    assert resolve_stored("old=base", store).label == "old"
    with pytest.raises(UsageError, match="has 2 variants; name one of"):
        resolve_stored("last", store)


def test_files_of_the_server_are_no_selection(store: Store, tmp_path: Path) -> None:
    (tmp_path / "secret.folded").write_text("main;work 5\n")

    file = f"{tmp_path}/secret.folded"
    for name in (file, f"file:{file}", f"x={file}", str(tmp_path), "-"):
        with pytest.raises(UsageError) as refused:
            resolve_stored(name, store)
        assert str(refused.value) == f"{name!r}: no session and no variant of this name in the store"


def test_one_that_takes_too_long_is_ended(store: Store) -> None:
    """The fastest start of Python takes longer than a millisecond."""

    async def ask() -> list[str]:
        analyses = Analyses(AnalysisLimits(seconds=0.001))
        with pytest.raises(AnalysisTooLong):
            await analyses.answer(order(store), ())
        return Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()

    before = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    assert asyncio.run(ask()) == before


def test_more_than_may_wait_are_turned_away(store: Store) -> None:
    async def ask() -> list[object]:
        analyses = Analyses(AnalysisLimits(at_once=1, waiting=1))
        asked = [analyses.answer(replace(order(store), limit=number), ()) for number in range(4)]
        return await asyncio.gather(*asked, return_exceptions=True)

    answers = asyncio.run(ask())
    assert [type(answer) for answer in answers].count(AnalysisBusy) == 2
    assert [type(answer) for answer in answers].count(bytes) == 2


def test_kept_answers_stay_within_their_room() -> None:
    cache = AnswerCache(100)
    for number in range(5):
        cache.put(b"%d" % number, b"x" * 25)
    assert [cache.get(b"%d" % number) is not None for number in range(5)] == [False, True, True, True, True]
    assert cache.get(b"1") is not None
    cache.put(b"5", b"y" * 25)
    # 2 was not asked for longest; 1 was asked for just now.
    assert [cache.get(b"%d" % number) is not None for number in range(1, 6)] == [True, False, True, True, True]


def test_an_answer_that_would_drive_out_the_others_is_not_kept() -> None:
    cache = AnswerCache(100)
    cache.put(b"small", b"x")
    cache.put(b"large", b"x" * 26)
    assert (cache.get(b"small"), cache.get(b"large")) == (b"x", None)
