"""Listens until it is told to end."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import resource
import signal
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import uvicorn
from fastapi import FastAPI

from profiler.errors import StoreError, UsageError
from profiler.model.quick_dataclass import dataclass
from profiler.service.api.settings import Limits, ServiceSettings
from profiler.service.api.stopping import stop_waiting
from profiler.service.listening.guarded_connection import guarded_connections

_ENDS_WITHIN_S = 10
# asyncio accepts so many at once, before any of those that are too many can go.
_BACKLOG = 128
# Beside connections: the store's files, databases, and connections that were accepted and are about to go.
_OTHER_DESCRIPTORS = 500


@dataclass(frozen=True, slots=True)
class Address:
    """``certificate``, ``key``: PEM files, None without TLS.  Port 0 = any free one."""

    host: str
    port: int
    certificate: Path | None = None
    key: Path | None = None


def serve(app: FastAPI, address: Address, settings: ServiceSettings, ready: Callable[[str], None]) -> None:
    """``ready`` is given the URL.  Returns never: SIGTERM, SIGHUP and SIGINT take their effect once everything was put away.

    ``UsageError``: not an address of this machine, no such certificate, or an address that others reach without TLS;
    ``StoreError``: the port is taken.
    """
    context = _tls_context(address)
    with _listening_socket(address) as listener:
        _check_reach(listener, address, settings)
        _allow_descriptors(settings.limits)
        ready(_url(listener, address))
        server = _Server(app, _configuration(app, settings, context))
        with _hangup_ends(server):
            server.run([listener])


class _Server(uvicorn.Server):
    def __init__(self, app: FastAPI, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._app = app

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        stop_waiting(self._app)
        super().handle_exit(sig, frame)

    def end(self) -> None:
        """May be called from a signal handler."""
        stop_waiting(self._app)
        self.should_exit = True


@contextlib.contextmanager
def _hangup_ends(server: _Server) -> Iterator[None]:
    """uvicorn ends in order on SIGTERM and SIGINT only.  Where SIGHUP is ignored (nohup) it stays so."""
    previous = signal.getsignal(signal.SIGHUP)
    received: list[int] = []

    def end(number: int, _: FrameType | None) -> None:
        received.append(number)
        server.end()

    if previous is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, previous)
    if received:
        signal.raise_signal(signal.SIGHUP)


def _configuration(app: FastAPI, settings: ServiceSettings, context: ssl.SSLContext | None) -> uvicorn.Config:
    limits = settings.limits
    return uvicorn.Config(
        app,
        http=guarded_connections(limits, context),
        ws="none",
        loop="asyncio",
        log_config=None,
        proxy_headers=settings.is_behind_proxy,
        server_header=False,
        headers=[("X-Content-Type-Options", "nosniff")],
        timeout_keep_alive=int(limits.head_s),
        timeout_graceful_shutdown=_ENDS_WITHIN_S,
        backlog=_BACKLOG,
    )


def _tls_context(address: Address) -> ssl.SSLContext | None:
    """None without a certificate."""
    if address.certificate is None:
        return None
    for path in (address.certificate, address.key):
        if path is not None and not os.access(path, os.R_OK):
            raise UsageError(f"{path}: cannot be read")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # An encrypted key would be asked for on the terminal.
        context.load_cert_chain(address.certificate, address.key, password=lambda: "")
    except (ssl.SSLError, ValueError) as error:
        raise UsageError(
            f"{address.certificate}, {address.key}: not a certificate with its key, unencrypted, in PEM ({error})"
        ) from None
    return context


def _listening_socket(address: Address) -> socket.socket:
    where = f"{address.host}:{address.port}"
    try:
        family, _, _, _, target = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(target[:2], family=family, backlog=_BACKLOG)
    except socket.gaierror as error:
        raise UsageError(f"{where}: {error.strerror}") from None
    except PermissionError:
        raise UsageError(f"{where}: not allowed; choose a --port above 1023") from None
    except OSError as error:
        raise StoreError(f"{where}: {os.strerror(error.errno or 0)}; choose another --host or --port") from None


def _check_reach(listener: socket.socket, address: Address, settings: ServiceSettings) -> None:
    host = ipaddress.ip_address(listener.getsockname()[0].partition("%")[0])
    if not host.is_loopback and address.certificate is None and not settings.is_behind_proxy:
        raise UsageError(
            f"{host} is reached from other machines, and tokens would cross the network in the clear: give --tls-cert and "
            "--tls-key, or --behind-proxy where a proxy does TLS"
        )


def _allow_descriptors(limits: Limits) -> None:
    """The usual soft limit is about as high as the number of connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = limits.connections + _OTHER_DESCRIPTORS
    wanted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _url(listener: socket.socket, address: Address) -> str:
    port = listener.getsockname()[1]
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"{'https' if address.certificate else 'http'}://{host}:{port}"
