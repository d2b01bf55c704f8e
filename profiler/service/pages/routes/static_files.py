"""The pages' style, their one script, and their icon."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.responses import Response

from profiler.service.pages.rendering import static_file

_TYPES = {
    "pages.css": "text/css; charset=utf-8",
    "progress.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


def static_files() -> APIRouter:
    """Open to everybody: the login page needs them."""
    router = APIRouter()
    contents = {name: static_file(name) for name in _TYPES}

    @router.get("/static/{name}")
    async def file(name: str) -> Response:
        if name not in contents:
            raise HTTPException(404)
        return Response(contents[name], media_type=_TYPES[name], headers={"cache-control": "max-age=300"})

    return router
