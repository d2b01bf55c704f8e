"""Processes that stand for the nodes of a devnet: each named NODE-VARIANT, replaced by its host's own command for it."""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from support import duty_program

# Whatever runs NODE is started again when it ends, as NODE.now says by then.
SUPERVISOR = """
while read -r name costs < "$2.now"; do
    "$1/$name" $costs &
    echo $! > "$2.pid"
    wait $!
done
"""
# DIRECTORY NODE VARIANT: returns when the process has its new name.
SWAP = """#!/bin/sh
cp "$1/$2.$3" "$1/$2.next" && mv "$1/$2.next" "$1/$2.now"
kill "$(cat "$1/$2.pid")"
for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
    [ "$(cat "/proc/$(cat "$1/$2.pid")/comm" 2>/dev/null)" = "$2-$3" ] && exit 0
    sleep 0.2
done
echo "$2 did not become $3"
exit 1
"""


@dataclass(frozen=True, slots=True)
class NodeCosts:
    """CPU time in every period: of ``hash_part`` by variant, and of ``tree_part``."""

    hash_ms: dict[str, float]
    tree_ms: float
    period_ms: int = duty_program.PERIOD_MS

    def cpu_ns(self, variant: str, seconds: float) -> float:
        return duty_program.cpu_ns(self.hash_ms[variant], self.tree_ms, seconds, self.period_ms)


@dataclass(slots=True)
class HostedNodes:
    """Use ``hosted_nodes``."""

    directory: Path
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, node: str, variant: str, costs: NodeCosts) -> None:
        """Returns when it runs."""
        for name, hash_ms in costs.hash_ms.items():
            (self.directory / f"{node}-{name}").symlink_to(self.directory / "duty")
            (self.directory / f"{node}.{name}").write_text(f"{node}-{name} {hash_ms} {costs.tree_ms} {costs.period_ms}\n")
        (self.directory / f"{node}.now").write_bytes((self.directory / f"{node}.{variant}").read_bytes())
        command = ["sh", "-c", SUPERVISOR, "sh", str(self.directory), str(self.directory / node)]
        self.running.append(subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL))
        self._await(self.directory / f"{node}.pid")

    def target(self, node: str) -> str:
        """Of agent.toml."""
        swap = [str(self.directory / "swap"), str(self.directory), node, "{variant}"]
        return f'[[target]]\nname = "node"\ncomm = "^{node}-(base|fast)$"\nvariants = ["base", "fast"]\nswap = {swap}\n'

    def end(self) -> None:
        for supervisor in self.running:
            subprocess.run(["kill", "-KILL", "--", f"-{supervisor.pid}"], check=True)
            supervisor.wait()

    def _await(self, path: Path) -> None:
        deadline = time.monotonic() + 10
        while not path.exists() or not path.read_text().strip():
            assert time.monotonic() < deadline, path
            time.sleep(0.02)


def hosted_nodes(directory: Path) -> HostedNodes:
    duty_program.build(directory)
    (directory / "swap").write_text(SWAP)
    (directory / "swap").chmod(0o755)
    return HostedNodes(directory)
