"""The messages in the table of docs/deploy.md are those that its causes bring about."""

from __future__ import annotations

import dataclasses
import re
import socket
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme

from collectors.agent.config.agent_file import read_agent_file
from collectors.agent.connection.server_connection import ServerAddress, ServerConnection
from collectors.agent.connection.server_errors import ServerTrouble
from collectors.agent.spool.spool_lock import spool_lock
from collectors.host import host_facts
from profiler.errors import SlotscopeError
from profiler.protocol.hello import AgentHello, AgentLimits, SpoolState
from profiler.service.access.token_registry import Scope, new_secret
from support import served_aggregator
from support.agent_process import write_config

PAGE = Path(__file__).resolve().parents[2] / "docs" / "deploy.md"
# Brought about elsewhere: test_agent_experiments.py, test_agent_spool.py, and the units of rounds and recordings.
ELSEWHERE = {"no agent '...' has said hello", "began ... ms too late", "perf may not record here"}

# Words of the C library and of OpenSSL, which depend on the name server and on the certificate.
OF_LIBRARIES = {"Name or service not known", "Temporary failure in name resolution", "self-signed certificate"}


def rows() -> list[str]:
    table = PAGE.read_text(encoding="utf-8").partition("\n| message |")[2]
    return [message for first in re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE) for message in re.findall("`(.*?)`", first)]


@dataclass(frozen=True, slots=True)
class Site:
    """An aggregator at ``url``.  ``ca``: its authority; ``other_ca``: another one; ``secrets``: by scope."""

    directory: Path
    url: str
    ca: Path
    other_ca: Path
    secrets: dict[Scope, str]

    def says(self, url: str = "", secret: str = "", ca: Path | None = None, protocol: int = 1) -> str:
        """What stops an agent's hello."""
        address = ServerAddress(url or self.url, secret or self.secrets[Scope.AGENT], ca or self.ca)
        connection = ServerConnection(address)
        hello = AgentHello(protocol, "0", host_facts(), (), (), (), AgentLimits(1, 1, 1, 0), SpoolState(0, 0))
        try:
            connection.hello(hello)
        except ServerTrouble as error:
            return str(error)
        finally:
            connection.close()
        return ""

    def serve(self, *options: str, store: str = "another") -> str:
        done = served_aggregator.slotscope(self.directory / store, *options)
        assert done.returncode in (1, 2)
        return done.stderr

    def config(self, server: str, mode: int = 0o600) -> str:
        path = write_config(self.directory / "agent", server)
        (path.parent / "token").chmod(mode)
        return _raised(lambda: read_agent_file(path))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("site")
    authority, other = trustme.CA(), trustme.CA()
    authority.cert_pem.write_to_path(directory / "ca.pem")
    other.cert_pem.write_to_path(directory / "other-ca.pem")
    tls = _certificate(authority, directory)
    store = directory / "store"
    secrets = {scope: served_aggregator.token_of(store, scope.value, scope) for scope in (Scope.AGENT, Scope.READER)}
    trusted = ssl.create_default_context(cafile=directory / "ca.pem")
    with served_aggregator.served(store, "--host", "127.0.0.1", *tls, trusted=trusted) as aggregator:
        url = f"https://localhost:{aggregator.address[1]}"
        yield Site(directory, url, directory / "ca.pem", directory / "other-ca.pem", secrets)


def _certificate(authority: trustme.CA, directory: Path, expires: datetime | None = None) -> list[str]:
    """The options of `serve` for one of localhost."""
    made = authority.issue_cert("localhost", not_after=expires)
    made.private_key_pem.write_to_path(directory / "key.pem")
    (directory / "cert.pem").write_bytes(b"".join(pem.bytes() for pem in made.cert_chain_pems))
    return ["--tls-cert", str(directory / "cert.pem"), "--tls-key", str(directory / "key.pem")]


def _raised(action: Callable[[], object]) -> str:
    with pytest.raises(SlotscopeError) as error:
        action()
    return str(error.value)


def _closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _expired(site: Site) -> str:
    directory = site.directory / "expired"
    directory.mkdir()
    authority = trustme.CA()
    authority.cert_pem.write_to_path(directory / "ca.pem")
    tls = _certificate(authority, directory, datetime.now(UTC) - timedelta(days=1))
    with served_aggregator.served(directory / "store", "--host", "127.0.0.1", *tls) as aggregator:
        return site.says(url=f"https://localhost:{aggregator.address[1]}", ca=directory / "ca.pem")


def _second_agent(site: Site) -> str:
    with spool_lock(site.directory / "spool"):
        return _raised(lambda: spool_lock(site.directory / "spool").__enter__())


def _full_spool(site: Site) -> str:
    from collectors.agent.spool.spool import open_spool

    spool = dataclasses.replace(open_spool(site.directory / "full", 1 << 20), limit_bytes=1)
    return spool.problem()


def _in_use(site: Site) -> str:
    return site.serve("serve", "--host", "127.0.0.1", "--port", site.url.rpartition(":")[2])


CAUSES: dict[str, Callable[[Site], str]] = {
    "Connection refused": lambda site: site.says(url=f"https://localhost:{_closed_port()}"),
    "certificate is not valid for '...'": lambda site: site.says(url=site.url.replace("localhost", "127.0.0.1")),
    "unable to get local issuer certificate": lambda site: site.says(ca=site.other_ca),
    "certificate has expired": _expired,
    "Server disconnected without sending a response": lambda site: site.says(url=site.url.replace("https", "http")),
    "answered 401: ...: the token is not accepted": lambda site: site.says(secret=new_secret()),
    "answered 403: this needs a token of the scope ...": lambda site: site.says(secret=site.secrets[Scope.READER]),
    "others may read the token": lambda site: site.config("https://aggregator:8640", 0o644),
    "http would show the token and all captures to the network": lambda site: site.config("http://aggregator:8640"),
    "another agent, process ..., has this spool": _second_agent,
    "... is reached from other machines, and tokens would cross the network in the clear": lambda site: site.serve(
        "serve", "--host", "0.0.0.0", "--port", "0"
    ),
    "Address already in use": _in_use,
    "another aggregator, process ..., serves this store": lambda site: site.serve("serve", "--port", "0", store="store"),
    "no store there": lambda site: site.serve("token", "list", store="."),
    "the agent speaks version ..., this aggregator ...: upgrade slotscope of the ...": lambda site: site.says(protocol=0),
    "the spool is full: ... wait for the aggregator": _full_spool,
}


def test_every_row_has_a_cause() -> None:
    assert set(rows()) == {*CAUSES, *ELSEWHERE, *OF_LIBRARIES}


@pytest.mark.parametrize("message", CAUSES)
def test_message(site: Site, message: str) -> None:
    said = " ".join(CAUSES[message](site).split())
    assert re.search(".*".join(map(re.escape, message.split("..."))), said), said
    assert "Traceback" not in said
