"""Where the pages are: their addresses, with every foreign part quoted."""

from __future__ import annotations

from urllib.parse import quote, urlencode


def arm_link(session: str, variant: str) -> str:
    """The report of one variant of a session."""
    return f"/captures/{_part(session)}/{_part(variant)}"


def session_link(session: str) -> str:
    return f"/captures/{_part(session)}"


def capture_link(session: str, number: int) -> str:
    """One run's capture, to be kept."""
    return f"/captures/{_part(session)}/runs/{number}.capture"


def experiment_link(session: str) -> str:
    return f"/experiments/{_part(session)}"


def host_link(agent: str) -> str:
    return f"/hosts/{_part(agent)}"


def job_link(job: str) -> str:
    return f"/jobs/{_part(job)}"


def with_query(address: str, **fields: object) -> str:
    """``fields`` that are empty are left out."""
    given = {name: str(value) for name, value in fields.items() if value not in ("", None)}
    return f"{address}?{urlencode(given, errors='surrogateescape')}" if given else address


def is_own_page(address: str) -> bool:
    """Whether it leads nowhere else: a path of this server, without a way to name another host."""
    return address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable() and "\\" not in address


def _part(text: str) -> str:
    return quote(text, safe="@,+", errors="surrogateescape")
