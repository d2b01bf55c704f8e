"""Files to keep."""

from __future__ import annotations

import re

from starlette.responses import Response

_LONGEST_STEM = 80
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def download(content: bytes, media_type: str, stem: str, suffix: str) -> Response:
    """``stem``: may hold foreign names; in the header stand letters, digits and ``. _ -`` alone."""
    name = _UNSAFE.sub("_", stem).strip("._")[:_LONGEST_STEM] or "slotscope"
    headers = {"content-disposition": f'attachment; filename="{name}{suffix}"'}
    return Response(content, media_type=media_type, headers=headers)
