"""The aggregator as an ASGI application: every route, and what lies around them.

From the outside in: requests are counted, limited by address, authenticated, limited by token, their bodies limited, routed.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from dataclasses import replace
from importlib.metadata import version

from fastapi import FastAPI

from profiler.service.access.authentication import Authentication
from profiler.service.agents.known_hosts import SILENT_HELLOS
from profiler.service.aggregator import Aggregator
from profiler.service.api.agent_routes import agent_routes
from profiler.service.api.body_limit import BodyLimit
from profiler.service.api.health_routes import health_routes
from profiler.service.api.openapi import describe
from profiler.service.api.operator_routes import operator_routes
from profiler.service.api.problems import add_problem_answers
from profiler.service.api.rate_limit import RequestRate, address_key, token_key
from profiler.service.api.reader_routes import reader_routes
from profiler.service.api.request_counts import RequestCounting, RequestCounts
from profiler.service.api.settings import ServiceSettings
from profiler.service.api.stopping import prepare_stopping
from profiler.service.experiments.round_loop import RoundLoop
from profiler.service.experiments.routes import experiment_routes
from profiler.service.ingest.retention_loop import RetentionLoop
from profiler.service.ingest.routes import upload_routes
from profiler.service.jobs.agent_watch import AgentWatch
from profiler.service.pages.pages_app import PagesMount, pages_app
from profiler.service.service_log import LOG


def make_app(aggregator: Aggregator, settings: ServiceSettings) -> FastAPI:
    """While it runs (its lifespan), agents that fall silent are noticed, experiments are carried on, and old sessions go."""

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        rounds = replace(settings.rounds, silent_s=SILENT_HELLOS * settings.hello_s)
        async with (
            _running(AgentWatch(aggregator, settings.hello_s).run(), "silent agents are not noticed any more"),
            _running(RoundLoop(aggregator, rounds).run(), "experiments are not carried on any more"),
            _running(RetentionLoop(aggregator.ingest, settings.retention).run(), "nothing old is removed any more"),
        ):
            yield

    app = FastAPI(title="slotscope aggregator", docs_url=None, redoc_url=None, redirect_slashes=False, lifespan=lifespan)
    prepare_stopping(app)
    add_problem_answers(app)
    counts = RequestCounts()
    _include_routes(app, aggregator, settings, counts)
    _add_layers(app, aggregator, settings, counts)
    app.openapi = describe(app, version("slotscope"))  # type: ignore[method-assign]
    return app


def _include_routes(app: FastAPI, aggregator: Aggregator, settings: ServiceSettings, counts: RequestCounts) -> None:
    app.include_router(agent_routes(aggregator, settings))
    app.include_router(reader_routes(aggregator, settings))
    app.include_router(operator_routes(aggregator))
    app.include_router(health_routes(aggregator, settings, counts))
    app.include_router(upload_routes(aggregator))
    app.include_router(experiment_routes(aggregator))
    app.router.routes.append(PagesMount(pages_app(aggregator, settings), app.router.routes))


def _add_layers(app: FastAPI, aggregator: Aggregator, settings: ServiceSettings, counts: RequestCounts) -> None:
    """The last one added is the outermost."""
    limits = settings.limits
    app.add_middleware(BodyLimit, limits=limits)
    app.add_middleware(RequestRate, rate=limits.by_token, key_of=token_key)
    app.add_middleware(Authentication, aggregator=aggregator)
    if not settings.is_behind_proxy:
        app.add_middleware(RequestRate, rate=limits.by_address, key_of=address_key)
    app.add_middleware(RequestCounting, counts=counts)


@contextlib.asynccontextmanager
async def _running(work: Coroutine[None, None, None], at_its_end: str) -> AsyncIterator[None]:
    """Meanwhile.  ``at_its_end``: what to say when it fails."""

    def say_when_failed(task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            LOG.error("%s: %s: %s", at_its_end, type(error).__name__, error)

    task = asyncio.create_task(work)
    task.add_done_callback(say_when_failed)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait((task,))
