"""Pages asked for as a browser does: with its headers, its cookies, and forms sent from where it says."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import unescape
from urllib.parse import urlencode

import httpx

from profiler.service.access.token_registry import Scope
from profiler.service.aggregator import Aggregator
from profiler.service.api.settings import ServiceSettings
from support.aggregators import AskedApp, add_token, asked

HERE = "https://aggregator"


@dataclass
class Visitor:
    """``app``: at the address that the browser is at; ``host``: the name in its address bar."""

    app: AskedApp
    host: str = "aggregator"
    cookies: dict[str, str] = field(default_factory=dict)

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self._kept(self.app.send("GET", path, headers={**self._headers(), **headers}))

    def submit(self, path: str, fields: dict[str, str], origin: str = "", **headers: str) -> httpx.Response:
        """``origin``: where the form was; "" = on a page of this server."""
        given = {"origin": origin or f"https://{self.host}", "content-type": "application/x-www-form-urlencoded"}
        content = urlencode(fields).encode()
        return self._kept(self.app.send("POST", path, content=content, headers={**self._headers(), **given, **headers}))

    def form_token(self, path: str) -> str:
        """Of the first form on the page."""
        found = re.search(r'name="form_token" value="([0-9a-f]{64})"', self.get(path).text)
        assert found is not None, f"no form on {path}"
        return found[1]

    def _headers(self) -> dict[str, str]:
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        return {"accept": "text/html,*/*;q=0.8", "host": self.host, **({"cookie": cookies} if cookies else {})}

    def _kept(self, answered: httpx.Response) -> httpx.Response:
        for name, value in answered.cookies.items():
            self.cookies[name] = value
        return answered


def local_visitor(aggregator: Aggregator, settings: ServiceSettings | None = None, host: str = "localhost:8640") -> Visitor:
    """On the server's own machine."""
    return Visitor(asked(aggregator, settings).at("127.0.0.1"), host)


def remote_visitor(aggregator: Aggregator) -> Visitor:
    """Elsewhere, and not logged in."""
    return Visitor(asked(aggregator))


def logged_in(aggregator: Aggregator, scope: Scope) -> Visitor:
    """Elsewhere, with a token of its own."""
    visitor = remote_visitor(aggregator)
    secret = add_token(aggregator, f"a-{scope}", scope)
    assert visitor.submit("/login", {"token": secret}).status_code == 303
    return visitor


def heading(answered: httpx.Response) -> str:
    """Of the page."""
    (found,) = re.findall("<h1>(.*?)</h1>", answered.text, re.DOTALL)
    return unescape(re.sub("<[^>]*>", "", found))
