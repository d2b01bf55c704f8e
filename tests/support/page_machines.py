"""Machines of a page: network hosts that also have files of their own, on which the page's shell blocks are run as they stand.

A host's /etc, /opt, /root, /srv, /usr/local and /var/lib are this machine's with its own changes on top, which are kept in
memory and are gone with it.  Commands that nobody runs in a test have a stand-in in its /usr/local/bin.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from support.network_hosts import NetworkHost, network_hosts
from support.network_hosts import why_not as why_no_network

_OWN = ("etc", "opt", "root", "srv", "usr/local", "var/lib")
_MOUNTS = """\
mount -t tmpfs tmpfs {base}
for own in {own}; do
    mkdir -p {base}/changes/$own {base}/work/$own
    mount -t overlay overlay -o lowerdir=/$own,upperdir={base}/changes/$own,workdir={base}/work/$own /$own
done
"""
# What the other machine is told comes over no network, which is not the page's matter.
_SSH = """\
#!/bin/sh
host=${{1#root@}}; shift
exec nsenter --target "$(cat {pids}/$host)" --net --mount --uts sh -c "cd /root; $*"
"""
_SCP = """\
#!/bin/sh
[ "$1" = -p ] && shift
for last; do :; done
while [ $# -gt 1 ]; do
    path=${last#*:}; case $path in */ | '') path=$path$(basename "$1") ;; esac
    ssh "${last%%:*}" "cat > '$path' && chmod $(stat -c %a "$1") '$path'" < "$1" || exit
    shift
done
"""


@dataclass(slots=True)
class Machine:
    """``keeper``: holds the machine's namespaces.  ``started``: what was left running on it, with its log."""

    host: NetworkHost
    keeper: subprocess.Popen[bytes]
    environment: Mapping[str, str]
    started: list[tuple[subprocess.Popen[bytes], Path]] = field(default_factory=list)

    @property
    def root(self) -> Path:
        """Its files as this machine sees them."""
        return Path(f"/proc/{self.keeper.pid}/root")

    def command(self, script: str) -> list[str]:
        inside = ["nsenter", "--target", str(self.keeper.pid), "--net", "--mount", "--uts"]
        return [*inside, "bash", "-euc", f"cd /root\n{script}"]

    def run(self, script: str, seconds: float = 180) -> str:
        """What the script printed, errors among it; each of its commands has to succeed."""
        done = subprocess.run(
            self.command(script),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=seconds,
            check=False,
            env=self.environment,
        )
        assert done.returncode == 0, f"{self.host.namespace}, exit code {done.returncode}:\n{script}\n{done.stdout}"
        return done.stdout

    def start(self, script: str, log: Path, sign: str, seconds: float = 60) -> None:
        """Leaves the script running, once ``sign`` stands in what it writes into ``log``."""
        with log.open("wb") as stream:
            process = subprocess.Popen(
                self.command(script),
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                env=self.environment,
                start_new_session=True,
            )
        self.started.append((process, log))
        deadline = time.monotonic() + seconds
        while sign not in log.read_text():
            is_late = process.poll() is not None or time.monotonic() > deadline
            assert not is_late, f"{script}\n{log.read_text()}"
            time.sleep(0.05)

    def interrupt(self, seconds: float = 90) -> str:
        """Ctrl-C for what was left running last; what it wrote."""
        process, log = self.started.pop()
        os.killpg(process.pid, signal.SIGINT)
        process.wait(seconds)
        return log.read_text()


def why_not() -> str:
    """Why there can be no such machines here, "" = there can."""
    if why_no_network():
        return why_no_network()
    tried = subprocess.run(
        ["unshare", "--mount", "sh", "-euc", _MOUNTS.format(base="/mnt", own="etc")],
        capture_output=True,
        text=True,
        check=False,
    )
    return f"no directory can be given changes of its own here: {tried.stderr.strip()}" if tried.returncode else ""


@contextlib.contextmanager
def machines(directory: Path, names: Mapping[str, str], environment: Mapping[str, str]) -> Iterator[dict[str, Machine]]:
    """Machines by their network names; each knows the others by ``names`` (aliases too, to network names).  At the end
    everything on them is ended, and they are gone."""
    pids = directory / "pids"
    pids.mkdir()
    made: dict[str, Machine] = {}
    with network_hosts(*dict.fromkeys(names.values())) as hosts:
        addresses = {host.namespace.rpartition("-")[2]: host.address for host in hosts}
        known = "".join(f"{addresses[host]} {alias}\n" for alias, host in names.items())
        try:
            for name, host in zip(addresses, hosts, strict=True):
                made[name] = _machine(directory, host, name, known, environment)
            yield made
        finally:
            for machine in made.values():
                _end(machine)


def _machine(directory: Path, host: NetworkHost, name: str, known: str, environment: Mapping[str, str]) -> Machine:
    base = directory / name
    base.mkdir()
    script = _MOUNTS.format(base=base, own=" ".join(_OWN)) + "echo ready; exec sleep infinity"
    keeper = subprocess.Popen(
        host.command("unshare", "--mount", "sh", "-euc", script), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    )
    assert keeper.stdout is not None
    machine = Machine(host, keeper, environment)
    assert keeper.stdout.readline() == b"ready\n", host.namespace
    (directory / "pids" / name).write_text(str(keeper.pid))
    with (machine.root / "etc/hosts").open("a") as hosts:
        hosts.write(known)
    _program(machine, "ssh", _SSH.format(pids=directory / "pids"))
    _program(machine, "scp", _SCP)
    return machine


def _program(machine: Machine, name: str, text: str) -> None:
    path = machine.root / "usr/local/bin" / name
    path.write_text(text)
    path.chmod(0o755)


def _end(machine: Machine) -> None:
    for process, _ in machine.started:
        os.killpg(process.pid, signal.SIGTERM)
    for process, _ in machine.started:
        try:
            process.wait(90)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert machine.keeper.stdout is not None
    machine.keeper.stdout.close()
    machine.keeper.kill()
    machine.keeper.wait()


@dataclass(frozen=True, slots=True)
class Block:
    """``where``: the words behind ``sh`` in the page: machines, and how it is run."""

    where: tuple[str, ...]
    script: str
    line: int


def blocks_of(page: str) -> tuple[Block, ...]:
    """The page's shell blocks in their order."""
    return tuple(
        Block(tuple(found[1].split()), found[2], page[: found.start()].count("\n") + 1)
        for found in re.finditer(r"^```sh *(.*)\n((?:.*\n)*?)```$", page, re.MULTILINE)
    )
