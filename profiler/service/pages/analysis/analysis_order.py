"""What a page asks of an analysis, and its time limit."""

from __future__ import annotations

from enum import StrEnum

from profiler.model.quick_dataclass import dataclass

TIME_LIMIT_S = 120
LARGEST_ANSWER_BYTES = 64 << 20


class Content(StrEnum):
    """REPORT, STACKS: of one arm.  COMPARISON: of a baseline and a candidate.  EXPERIMENT: of a session."""

    REPORT = "report"
    STACKS = "stacks"
    COMPARISON = "comparison"
    EXPERIMENT = "experiment"


class Format(StrEnum):
    """HTML: a piece to be put into a page.  SPEEDSCOPE: of stacks, the others of all else."""

    HTML = "html"
    MARKDOWN = "markdown"
    JSON = "json"
    CSV = "csv"
    SPEEDSCOPE = "speedscope"


@dataclass(frozen=True, slots=True)
class AnalysisOrder:
    """``store``: its directory.  ``selectors``: "SESSION/VARIANT" for each arm; the session of an experiment.
    ``phase``: None = as the runs were recorded for, "" = all time.  ``per``: units of work in a run.  ``limit``: rows of
    tables on a page."""

    content: Content
    format: Format
    store: str
    selectors: tuple[str, ...]
    by: str = "category"
    view: str = "leaf"
    phase: str | None = None
    per: float = 1.0
    limit: int = 25
