"""Node stand-ins on this host, each with a Prometheus page of its own: ``support.duty_program`` by other names."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from support.duty_program import PERIOD_MS

TREE_MS = 1.0
# Mean times in ms that were published of four nodes with the one build and four with the other, each the mean of 30 minutes.
PUBLISHED = {"default": (8.997, 9.026, 9.036, 9.018), "thin": (8.791, 8.822, 8.855, 8.875)}


@dataclass(frozen=True, slots=True)
class Node:
    """A process that is watched.  ``comm``: its name for the kernel."""

    comm: str
    port: int
    process: subprocess.Popen[bytes]

    @property
    def metrics(self) -> str:
        return f"http://127.0.0.1:{self.port}/metrics"

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def running_nodes(
    program: Path, means_ms: Sequence[float], hash_ms: Sequence[float], ports: Sequence[int] = ()
) -> Iterator[list[Node]]:
    """One per mean, named slsc-n0, slsc-n1, ...; all answer.  ``ports``: where their pages are, () = free ones."""
    nodes: list[Node] = []
    try:
        for number, (mean_ms, each_hash_ms) in enumerate(zip(means_ms, hash_ms, strict=True)):
            comm = f"slsc-n{number}"
            link = program.parent / comm
            if not link.exists():
                link.symlink_to(program)
            port = ports[number] if ports else _free_port()
            words = [str(link), str(each_hash_ms), str(TREE_MS), str(PERIOD_MS), str(port), f"{1e3 * mean_ms:.3f}"]
            nodes.append(Node(comm, port, subprocess.Popen(words, stdin=subprocess.DEVNULL)))
        for node in nodes:
            _await_port(node)
        yield nodes
    finally:
        for node in nodes:
            node.end()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _await_port(node: Node) -> None:
    deadline = time.monotonic() + 30
    while True:
        with socket.socket() as attempt:
            if attempt.connect_ex(("127.0.0.1", node.port)) == 0:
                return
        assert node.process.poll() is None, f"{node.comm} ended with {node.process.returncode}"
        assert time.monotonic() < deadline
        time.sleep(0.05)
