"""The faulty proxy as a process on a host, told from here what to do to whoever goes through it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from support import faulty_proxy
from support.network_hosts import NetworkHost


@dataclass(frozen=True, slots=True)
class BadLink:
    """See ``faulty_proxy`` for the commands."""

    process: subprocess.Popen[str]

    def does(self, command: str) -> None:
        """From now on, open connections included."""
        assert self.process.stdin is not None
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        self.await_ok()

    def await_ok(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ok\n"


@contextlib.contextmanager
def bad_link(host: NetworkHost, port: int, target_port: int) -> Iterator[BadLink]:
    """From ``port`` of the host to ``target_port`` of the same."""
    places = (f"{host.address}:{port}", f"{host.address}:{target_port}")
    command = host.command(sys.executable, faulty_proxy.__file__, *places)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        link = BadLink(process)
        link.await_ok()
        try:
            yield link
        finally:
            assert process.stdin is not None
            process.stdin.close()
