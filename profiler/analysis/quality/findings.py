"""One finding about an arm's quality: how bad it is, and the warning that says so."""

from __future__ import annotations

from profiler.model.quick_dataclass import dataclass

OK, WARN, FAILED = "ok", "warn", "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """``severity``: the status that this finding alone would give."""

    severity: str
    code: str
    message: str
    advice: str


def percent(share: float) -> str:
    """0.051 as "5.1 %"."""
    return f"{100 * share:.1f} %"
