"""Import of numpy without the threads of its linear algebra, which nothing here uses and which cost CPU time at the start."""

from __future__ import annotations

import importlib
import os

_THREADS_VARIABLE = "OPENBLAS_NUM_THREADS"


def import_numpy() -> None:
    """The environment is as before afterwards: programs that are started must not see the setting, and a user's own stays."""
    if _THREADS_VARIABLE in os.environ:
        return
    os.environ[_THREADS_VARIABLE] = "1"
    try:
        importlib.import_module("numpy")
    finally:
        del os.environ[_THREADS_VARIABLE]
