"""The aggregator as an ASGI application: every route, and what lies around them."""

from __future__ import annotations

from fastapi import FastAPI

from profiler.service.access.authentication import Authentication
from profiler.service.aggregator import Aggregator
from profiler.service.api.problems import add_problem_answers
from profiler.service.api.settings import ServiceSettings
from profiler.service.pages.pages_app import PagesMount, pages_app


def make_app(aggregator: Aggregator, settings: ServiceSettings) -> FastAPI:
    app = FastAPI(title="slotscope aggregator", docs_url=None, redoc_url=None)
    add_problem_answers(app)
    # app.include_router(upload_routes(aggregator))
    # app.include_router(experiment_routes(aggregator))
    app.router.routes.append(PagesMount(pages_app(aggregator, settings), tuple(app.router.routes)))
    app.add_middleware(Authentication, aggregator=aggregator)
    return app
