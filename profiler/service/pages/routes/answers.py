"""From what a reader asked for to an answer: a piece of a page, or a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response

from profiler.errors import UsageError
from profiler.model.quick_dataclass import dataclass
from profiler.service.pages.analysis.analyses import Analyses, AnalysisRefused
from profiler.service.pages.analysis.analysis_order import AnalysisOrder, Content, Format
from profiler.service.pages.downloads import download
from profiler.service.pages.rendering import safe_html
from profiler.service.pages.routes.table_choice import TableChoice
from profiler.store.selectors import Selection, resolve_stored
from profiler.store.store import Store

SUFFIXES = {"md": Format.MARKDOWN, "json": Format.JSON, "csv": Format.CSV, "speedscope.json": Format.SPEEDSCOPE}
_MEDIA_TYPES = {
    Format.MARKDOWN: "text/markdown; charset=utf-8",
    Format.JSON: "application/json",
    Format.CSV: "text/csv; charset=utf-8",
    Format.SPEEDSCOPE: "application/json",
}


@dataclass(frozen=True, slots=True)
class Question:
    """``captures``: the blobs that the answer is made of."""

    order: AnalysisOrder
    captures: tuple[str, ...]

    def as_format(self, chosen: Format) -> Question:
        """The same, to be answered in another form."""
        content = Content.STACKS if chosen is Format.SPEEDSCOPE else self.order.content
        return replace(self, order=replace(self.order, format=chosen, content=content))


@dataclass(frozen=True, slots=True)
class Piece:
    """``html``: of the page.  ``problem``: why there is none, "" = there is."""

    html: Markup
    problem: str
    status: int


def question(
    content: Content, store: Store, selections: Sequence[Selection], choice: TableChoice, per: float = 1.0
) -> Question:
    """About arms of the store, to be answered on a page."""
    order = AnalysisOrder(
        content=content,
        format=Format.HTML,
        store=str(store.directory),
        selectors=tuple(_exact(selection) for selection in selections),
        by=choice.by,
        view=choice.view,
        phase=choice.asked_phase,
        per=per,
        limit=choice.rows,
    )
    return Question(order, tuple(run.blob for selection in selections for run in selection.runs))


async def selected(store: Store, selectors: Sequence[str]) -> list[Selection]:
    """``AnalysisRefused`` for what is not in the store, or not of one kind."""

    def resolved() -> list[Selection]:
        return [resolve_stored(selector, store) for selector in selectors]

    try:
        return await run_in_threadpool(resolved)
    except UsageError as error:
        raise AnalysisRefused(str(error), is_question_wrong=True) from None


async def piece(analyses: Analyses, asked: Question) -> Piece:
    """A refusal is shown in the piece's place."""
    try:
        return Piece(safe_html(await analyses.answer(asked.order, asked.captures)), "", 200)
    except AnalysisRefused as error:
        return refusal(error)


def refusal(error: AnalysisRefused) -> Piece:
    return Piece(Markup(""), str(error), 400 if error.is_question_wrong else 422)


async def file(analyses: Analyses, asked: Question, suffix: str, stem: str) -> Response:
    """``HTTPException`` 404 for a suffix that no file has."""
    chosen = SUFFIXES.get(suffix)
    if chosen is None:
        raise HTTPException(404)
    whole = asked.as_format(chosen)
    content = await analyses.answer(whole.order, whole.captures)
    return download(content, _MEDIA_TYPES[chosen], stem, f".{suffix}")


def _exact(selection: Selection) -> str:
    """Names the same runs whatever is added to the store meanwhile."""
    run = selection.runs[0]
    exact = f"{run.key.session}/{run.summary.variant}"
    return exact if selection.label == run.summary.variant else f"{selection.label}={exact}"
