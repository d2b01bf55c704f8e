"""Asks an aggregator over HTTP, for commands that are given --server."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.cli.server_extra import check_packages
from profiler.errors import StoreError, UsageError
from profiler.model.quick_dataclass import dataclass

if TYPE_CHECKING:
    import httpx

    from profiler.codec.json_values import Json

TOKEN_FILE_VARIABLE = "SLOTSCOPE_TOKEN_FILE"
_TIMEOUT_S = 30.0
_SLOW_TIMEOUT_S = 330.0


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """``ca``: PEM file of the authority that signed the aggregator's certificate, None = those of the system."""

    server: str
    token_file: Path
    ca: Path | None

    @property
    def words(self) -> tuple[str, ...]:
        """The options that give them, for a command to be repeated."""
        authority = ("--ca", str(self.ca)) if self.ca is not None else ()
        return ("--server", self.server, "--token-file", str(self.token_file), *authority)


def add_server_options(
    parser: argparse.ArgumentParser,
    purpose: str = "ask this aggregator (default: the store on this machine)",
    needed: bool = False,
) -> None:
    """--server, --token-file, --ca.  ``purpose``: the help of the first, which may be ``needed``."""
    parser.add_argument("--server", metavar="URL", help=purpose, required=needed)
    secret = f"holds the token, for its user alone to read (default: ${TOKEN_FILE_VARIABLE})"
    parser.add_argument("--token-file", type=Path, metavar="FILE", help=secret)
    parser.add_argument("--ca", type=Path, metavar="FILE", help="authority of the aggregator's certificate, PEM")


def server_options(arguments: argparse.Namespace) -> ServerOptions | None:
    """None without --server.  ``UsageError``: no token file, or a token would cross the network in the clear."""
    if not arguments.server:
        return None
    server = arguments.server.rstrip("/")
    if not _is_safe(server):
        raise UsageError(f"{server}: give an https:// address; http:// is for this machine only, as the token is sent along")
    token_file = arguments.token_file or os.environ.get(TOKEN_FILE_VARIABLE)
    if not token_file:
        raise UsageError(f"--server needs a token: name its file with --token-file or {TOKEN_FILE_VARIABLE}")
    return ServerOptions(server, Path(token_file), arguments.ca)


def _is_safe(server: str) -> bool:
    """Nobody else can read what is sent there."""
    import urllib.parse

    from profiler.protocol.loopback import is_loopback

    try:
        parts = urllib.parse.urlsplit(server)
    except ValueError:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))


def fetch_json(options: ServerOptions, path: str) -> Json:
    """What the aggregator answers.  ``UsageError``: the token is not taken; ``StoreError``: it cannot be reached, or has a
    problem."""
    return _json(options, _response(options, "GET", path))


def send_json(options: ServerOptions, path: str, body: Json) -> Json:
    """The answer to a POST; errors as of ``fetch_json``, and ``UsageError`` when what is asked for cannot be done."""
    return _json(options, _response(options, "POST", path, body))


def fetch_text(options: ServerOptions, path: str) -> str:
    """As ``fetch_json``, whatever the text is; the aggregator may work on it for minutes."""
    return _response(options, "GET", path, timeout_s=_SLOW_TIMEOUT_S).text


def _response(
    options: ServerOptions, method: str, path: str, body: Json = None, timeout_s: float = _TIMEOUT_S
) -> httpx.Response:
    check_packages(("httpx",), "agent")
    import ssl

    import httpx

    from profiler.protocol.token_file import read_token

    try:
        context = ssl.create_default_context(cafile=options.ca)
    except OSError as error:
        raise UsageError(f"{options.ca}: not a certificate in PEM ({error.strerror or error})") from None
    headers = {"Authorization": f"Bearer {read_token(options.token_file)}"}
    try:
        with httpx.Client(verify=context, timeout=timeout_s, trust_env=False) as client:
            response = client.request(method, f"{options.server}{path}", headers=headers, json=body)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        hint = "; --ca FILE names the authority" if options.ca is None and "CERTIFICATE_VERIFY_FAILED" in str(error) else ""
        raise StoreError(f"{options.server}: {error or type(error).__name__}{hint}") from None
    if response.is_error:
        raise _refused(options, response)
    return response


def _json(options: ServerOptions, response: httpx.Response) -> Json:
    try:
        answer: Json = response.json()
    except ValueError:
        raise StoreError(f"{options.server}: the answer is not JSON; is it an aggregator?") from None
    return answer


def _refused(options: ServerOptions, response: httpx.Response) -> UsageError | StoreError:
    try:
        problem = response.json()
    except ValueError:
        problem = {}
    known = problem if isinstance(problem, dict) else {}
    detail = str(known.get("detail") or known.get("title") or response.reason_phrase)
    message = f"{options.server}: {response.status_code}: {detail}"
    if response.request.method == "POST" and response.status_code in (409, 422):
        return UsageError(detail)
    return UsageError(message) if response.status_code in (401, 403) else StoreError(message)
