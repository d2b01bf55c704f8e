"""The packages that only the distributed part needs."""

from __future__ import annotations

import importlib.util

from profiler.errors import UsageError

_SERVER_PACKAGES = ("fastapi", "uvicorn", "jinja2", "python_multipart")


def check_server_extra() -> None:
    """``UsageError`` when a package of the extra `server` is missing."""
    check_packages(_SERVER_PACKAGES, "server")


def check_packages(packages: tuple[str, ...], extra: str) -> None:
    """``UsageError`` names the first that is missing, and the extra that brings it."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(f"{missing[0]} is not installed: `pip install slotscope[{extra}]`")
