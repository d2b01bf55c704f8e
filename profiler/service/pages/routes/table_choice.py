"""What a reader may choose of a table, in the address of the page."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from fastapi import Depends
from starlette.exceptions import HTTPException

from profiler.model.analysis_choices import DIMENSIONS, TABLE_ROWS, VIEWS
from profiler.model.quick_dataclass import dataclass

ROW_COUNTS = (TABLE_ROWS, 200, 2_000)


@dataclass(frozen=True, slots=True)
class TableChoice:
    """``phase``: "" = as recorded, unless ``is_all_time``.  ``rows``: shown on the page; downloads are whole."""

    by: str
    view: str
    phase: str
    is_all_time: bool
    rows: int

    @property
    def asked_phase(self) -> str | None:
        """As an analysis wants it: None = as recorded, "" = all time."""
        return "" if self.is_all_time else self.phase or None

    @property
    def fields(self) -> dict[str, object]:
        """For an address that leads to the same choice."""
        return {
            "by": self.by,
            "view": self.view,
            "phase": self.phase,
            "all_time": "yes" if self.is_all_time else "",
            "rows": self.rows,
        }


def _table_choice(
    by: str = DIMENSIONS[0], view: str = VIEWS[0], phase: str = "", all_time: str = "", rows: int = TABLE_ROWS
) -> TableChoice:
    if by not in DIMENSIONS or view not in VIEWS or rows not in ROW_COUNTS:
        raise HTTPException(400, f"Tables are by {', '.join(DIMENSIONS)}, in the view {' or '.join(VIEWS)}.")
    return TableChoice(by, view, phase, bool(all_time), rows)


ChosenTable: TypeAlias = Annotated[TableChoice, Depends(_table_choice)]
