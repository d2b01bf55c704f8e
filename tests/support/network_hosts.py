"""Hosts as network namespaces on one switch: what they run sees only its own interface, and links can be taken down."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PREFIX = "10.213.7"


@cache
def why_not() -> str:
    """Why no namespaces can be made here, "" = they can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "ip (iproute2) is not installed"
    name = f"slsc-try-{os.getpid()}"
    tried = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if tried.returncode:
        return f"no network namespace can be made here: {tried.stderr.strip()}"
    _ip("netns", "del", name)
    return ""


@dataclass(frozen=True, slots=True)
class NetworkHost:
    """``namespace``: its name for ip; ``address``: of its only interface beside loopback."""

    namespace: str
    address: str
    port: str
    switch: str

    def command(self, *arguments: str) -> list[str]:
        """The argument list that runs this on the host, with the host's name as its hostname."""
        name = f'hostname {self.namespace.rpartition("-")[2]}; exec "$@"'
        # Not `ip netns exec`, which mounts a /sys of its own over that with the control groups.
        inside = ["nsenter", f"--net=/run/netns/{self.namespace}", "unshare", "--uts"]
        return [*inside, "sh", "-c", name, "sh", *arguments]

    def processes(self) -> dict[int, str]:
        """All that runs on the host, zombies not: process IDs and command lines."""
        there = os.stat(f"/run/netns/{self.namespace}").st_ino
        found = {}
        for entry in os.listdir("/proc"):
            with contextlib.suppress(OSError):
                if entry.isdigit() and os.stat(f"/proc/{entry}/ns/net").st_ino == there:
                    found[int(entry)] = Path(f"/proc/{entry}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        return found

    def unplug(self) -> None:
        """Packets to and from the host are lost from now on; nobody is told."""
        _ip("-n", self.switch, "link", "set", self.port, "down")

    def plug_in(self) -> None:
        _ip("-n", self.switch, "link", "set", self.port, "up")


@contextlib.contextmanager
def network_hosts(*names: str) -> Iterator[tuple[NetworkHost, ...]]:
    """Hosts of these short names; everything is gone at the end."""
    base = f"slsc-{os.getpid()}"
    switch = f"{base}-switch"
    with contextlib.ExitStack() as made:
        _add_namespace(switch, made)
        _ip("-n", switch, "link", "add", "bridge", "type", "bridge")
        _ip("-n", switch, "link", "set", "bridge", "up")
        yield tuple(_host(name, number, base, switch, made) for number, name in enumerate(names, 1))


def _host(name: str, number: int, base: str, switch: str, made: contextlib.ExitStack) -> NetworkHost:
    host = NetworkHost(f"{base}-{name}", f"{PREFIX}.{number}", f"port{number}", switch)
    _add_namespace(host.namespace, made)
    _ip("-n", switch, "link", "add", host.port, "type", "veth", "peer", "name", "eth0", "netns", host.namespace)
    _ip("-n", switch, "link", "set", host.port, "master", "bridge")
    _ip("-n", switch, "link", "set", host.port, "up")
    _ip("-n", host.namespace, "addr", "add", f"{host.address}/24", "dev", "eth0")
    for interface in ("lo", "eth0"):
        _ip("-n", host.namespace, "link", "set", interface, "up")
    return host


def _add_namespace(name: str, made: contextlib.ExitStack) -> None:
    _ip("netns", "add", name)
    made.callback(_ip, "netns", "del", name)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, timeout=30)
