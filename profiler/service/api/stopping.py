"""Whether the server is to end: requests that wait for something then answer at once."""

from __future__ import annotations

import threading

from starlette.applications import Starlette


def prepare_stopping(app: Starlette) -> None:
    app.state.stopping = threading.Event()


def stop_waiting(app: Starlette) -> None:
    """May be called from a signal handler."""
    app.state.stopping.set()


def is_stopping(app: Starlette) -> bool:
    stopping: threading.Event = app.state.stopping
    return stopping.is_set()
