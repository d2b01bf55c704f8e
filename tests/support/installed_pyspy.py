"""Whether py-spy is there to be tested."""

from __future__ import annotations

import pytest

from collectors.profilers.pyspy import pyspy_path
from profiler.errors import CaptureError


def _is_installed() -> bool:
    try:
        pyspy_path()
    except CaptureError:
        return False
    return True


needs_pyspy = pytest.mark.skipif(not _is_installed(), reason="py-spy is not installed: pip install py-spy")
