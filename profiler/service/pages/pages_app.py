"""The pages as an application of their own, below the aggregator's: with its own errors, and headers for browsers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

from fastapi import FastAPI
from starlette.routing import BaseRoute, Match, Mount
from starlette.types import ASGIApp, Scope

from profiler.model.quick_dataclass import dataclass
from profiler.protocol.addresses import API
from profiler.service.aggregator import Aggregator
from profiler.service.api.settings import ServiceSettings
from profiler.service.pages.analysis.analyses import Analyses, AnalysisLimits
from profiler.service.pages.error_pages import add_error_pages
from profiler.service.pages.login.login_attempts import AttemptLimits, LoginAttempts
from profiler.service.pages.page_headers import PageHeaders
from profiler.service.pages.rendering import PageRenderer
from profiler.service.pages.routes.capture_pages import capture_pages
from profiler.service.pages.routes.comparison_pages import comparison_pages
from profiler.service.pages.routes.experiment_pages import experiment_pages
from profiler.service.pages.routes.host_pages import host_pages
from profiler.service.pages.routes.job_pages import job_pages
from profiler.service.pages.routes.login_pages import login_pages
from profiler.service.pages.routes.report_pages import report_pages
from profiler.service.pages.routes.static_files import static_files


@dataclass(frozen=True, slots=True)
class PageLimits:
    analyses: AnalysisLimits = field(default_factory=AnalysisLimits)
    attempts: AttemptLimits = field(default_factory=AttemptLimits)


def pages_app(aggregator: Aggregator, settings: ServiceSettings, limits: PageLimits | None = None) -> ASGIApp:
    """All pages.  ``limits``: None = the usual ones."""
    chosen = limits or PageLimits()
    renderer, analyses = PageRenderer(), Analyses(chosen.analyses)
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    app.state.aggregator = aggregator
    app.state.is_behind_proxy = settings.is_behind_proxy
    add_error_pages(app, renderer)
    app.include_router(static_files())
    app.include_router(login_pages(aggregator, renderer, LoginAttempts(chosen.attempts)))
    app.include_router(host_pages(aggregator, renderer, settings.hello_s))
    app.include_router(job_pages(aggregator, renderer))
    app.include_router(capture_pages(aggregator, renderer))
    app.include_router(report_pages(aggregator, renderer, analyses))
    app.include_router(comparison_pages(aggregator, renderer, analyses))
    app.include_router(experiment_pages(aggregator, renderer, analyses))
    return PageHeaders(app)


class PagesMount(Mount):
    """Everything that no other route of the application knows, whatever the method, and that is not of its interface."""

    def __init__(self, pages: ASGIApp, all_routes: Sequence[BaseRoute]) -> None:
        """``all_routes``: of the application, this one included, now and later."""
        super().__init__("", app=pages, name="pages")
        self._all_routes = all_routes

    def matches(self, scope: Scope) -> tuple[Match, Any]:
        is_others = scope.get("path", "").startswith(f"{API}/") or any(
            route is not self and route.matches(scope)[0] is not Match.NONE for route in self._all_routes
        )
        return (Match.NONE, {}) if is_others else super().matches(scope)
