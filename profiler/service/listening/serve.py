"""Listens until it is told to end."""

from __future__ import annotations

import ipaddress
import os
import resource
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import uvicorn
from fastapi import FastAPI

from profiler.errors import StoreError, UsageError
from profiler.service.api.settings import Limits, ServiceSettings
from profiler.service.api.stopping import stop_waiting
from profiler.service.listening.guarded_connection import guarded_connections

_ENDS_WITHIN_S = 10
_BACKLOG = 1024
# Beside connections: the store's files, databases, the threads' own.
_OTHER_DESCRIPTORS = 200


@dataclass(frozen=True, slots=True)
class Address:
    """``certificate``, ``key``: PEM files, None without TLS.  Port 0 = any free one."""

    host: str
    port: int
    certificate: Path | None = None
    key: Path | None = None


def serve(app: FastAPI, address: Address, settings: ServiceSettings, ready: Callable[[str], None]) -> None:
    """``ready`` is given the URL.  Returns never: SIGTERM and SIGINT take their effect once everything was put away.

    ``UsageError``: not an address of this machine, no such certificate, or an address that others reach without TLS;
    ``StoreError``: the port is taken.
    """
    _check_certificate(address)
    with _listening_socket(address) as listener:
        _check_reach(listener, address, settings)
        _allow_descriptors(settings.limits)
        ready(_url(listener, address))
        _Server(app, _configuration(app, address, settings)).run([listener])


class _Server(uvicorn.Server):
    def __init__(self, app: FastAPI, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._app = app

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        stop_waiting(self._app)
        super().handle_exit(sig, frame)


def _configuration(app: FastAPI, address: Address, settings: ServiceSettings) -> uvicorn.Config:
    limits = settings.limits
    return uvicorn.Config(
        app,
        http=guarded_connections(limits),
        ws="none",
        loop="asyncio",
        log_config=None,
        proxy_headers=settings.is_behind_proxy,
        server_header=False,
        headers=[("X-Content-Type-Options", "nosniff")],
        timeout_keep_alive=int(limits.head_s),
        timeout_graceful_shutdown=_ENDS_WITHIN_S,
        backlog=_BACKLOG,
        ssl_certfile=address.certificate,
        ssl_keyfile=address.key,
    )


def _check_certificate(address: Address) -> None:
    if address.certificate is None:
        return
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    for path in (address.certificate, address.key):
        if path is not None and not os.access(path, os.R_OK):
            raise UsageError(f"{path}: cannot be read")
    try:
        # An encrypted key would be asked for on the terminal.
        context.load_cert_chain(address.certificate, address.key, password=lambda: "")
    except (ssl.SSLError, ValueError) as error:
        raise UsageError(
            f"{address.certificate}, {address.key}: not a certificate with its key, unencrypted, in PEM ({error})"
        ) from None


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
    wanted = 2 * limits.connections + _OTHER_DESCRIPTORS
    if soft != resource.RLIM_INFINITY and soft < wanted:
        raised = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))


def _url(listener: socket.socket, address: Address) -> str:
    port = listener.getsockname()[1]
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"{'https' if address.certificate else 'http'}://{host}:{port}"
