"""A machine with a real systemd as its first process, in namespaces of its own: this machine's files with changes on top that
are gone with it, its own network with nothing but loopback, its own part of the cgroups.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SYSTEMD = Path("/lib/systemd/systemd")
BOOT_WITHIN_S = 120
# basic.target, and nothing of what is enabled on this machine.
_BOOT = """\
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs {work}
mkdir {work}/changes {work}/work {work}/root
mount -t overlay overlay -o lowerdir=/,upperdir={work}/changes,workdir={work}/work {work}/root
cd {work}/root
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t tmpfs -o mode=755 tmpfs dev
for device in null zero full random urandom tty; do touch dev/$device; mount --bind /dev/$device dev/$device; done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
for each in dev/shm run tmp; do mount -t tmpfs tmpfs $each; done
mount -t tmpfs tmpfs sys/fs/cgroup || :
mount -t cgroup2 cgroup2 sys/fs/cgroup
mkdir -p opt/slotscope/share/slotscope opt/python opt/packages opt/checkout oldroot
mount --bind {python} opt/python
mount --bind {packages} opt/packages
mount --bind {checkout} opt/checkout
cp {checkout}/collectors/agent/*.service {checkout}/profiler/service/listening/*.service opt/slotscope/share/slotscope/
cat > opt/slotscope/slotscope <<'END'
#!/bin/sh
export PYTHONPATH=/opt/checkout:/opt/packages PYTHONDONTWRITEBYTECODE=1 LD_LIBRARY_PATH=/opt/python/lib
exec /opt/python/bin/{interpreter} -m profiler.cli.main "$@"
END
chmod 755 opt/slotscope/slotscope
ln -sf /opt/slotscope/slotscope usr/local/bin/slotscope
[ ! -x {scripts}/py-spy ] || cp {scripts}/py-spy usr/local/bin/
rm -rf etc/systemd/system/*.wants
echo 0123456789abcdef0123456789abcdef > etc/machine-id
hostname host1
echo '127.0.0.1 localhost
192.0.2.10 aggregator' > etc/hosts
ip link set lo up
ip address add 192.0.2.10/32 dev lo
pivot_root . oldroot
umount -l /oldroot
mount --make-rshared /
export container=other
exec {systemd} --system --unit=basic.target
"""


def why_not() -> str:
    """Why there can be no such machine here, "" = there can."""
    if os.geteuid() != 0:
        return "needs root"
    if not SYSTEMD.exists():
        return "systemd is not installed"
    programs = ("unshare", "nsenter", "pivot_root", "ip", "useradd", "runuser", "dbus-daemon")
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        return f"{missing[0]} is not installed"
    return "" if _cgroups() else "there are no cgroups of version 2"


@dataclass(frozen=True, slots=True)
class SystemdMachine:
    """``first``: its first process, as this machine has it."""

    first: int

    @property
    def root(self) -> Path:
        return Path(f"/proc/{self.first}/root")

    def run(self, script: str, seconds: float = 120) -> str:
        """What the script printed, errors among it; each of its commands has to succeed."""
        namespaces = ("--mount", "--uts", "--ipc", "--pid", "--cgroup", "--net")
        command = ["nsenter", "--target", str(self.first), *namespaces, "bash", "-euc", f"cd /root\n{script}"]
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=seconds,
            check=False,
            env={"PATH": "/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin", "HOME": "/root", "LANG": "C.UTF-8"},
        )
        assert done.returncode == 0, f"exit code {done.returncode}:\n{script}\n{done.stdout}"
        return done.stdout

    def wait_until(self, script: str, seconds: float) -> str:
        """What it printed when all of its commands succeeded for the first time."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                return self.run(script)
            except AssertionError:
                if time.monotonic() > deadline:
                    raise
            time.sleep(0.5)


@contextlib.contextmanager
def systemd_machine(directory: Path) -> Iterator[SystemdMachine]:
    """``directory``: of its files while it runs."""
    cgroup = _cgroups()[0] / f"slotscope-systemd-{os.getpid()}"
    work = directory / "machine"
    work.mkdir()
    script = _BOOT.format(
        work=work,
        python=sys.base_prefix,
        packages=sysconfig.get_paths()["purelib"],
        scripts=sysconfig.get_path("scripts"),
        checkout=ROOT,
        interpreter=Path(os.path.realpath(sys.executable)).name,
        systemd=SYSTEMD,
    )
    cgroup.mkdir()
    namespaces = ("--mount", "--uts", "--ipc", "--pid", "--cgroup", "--net")
    start = f'echo $$ > {cgroup}/cgroup.procs; exec unshare {" ".join(namespaces)} --fork --kill-child bash -c "$0"'
    log = directory / "boot.log"
    with log.open("wb") as output:
        parent = subprocess.Popen(["bash", "-c", start, script], stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        yield _booted(parent, log)
    finally:
        parent.kill()
        parent.wait()
        _remove(cgroup)


def _cgroups() -> list[Path]:
    """Where the cgroups of version 2 are mounted."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    return [Path(fields[1]) for fields in mounts if fields[2] == "cgroup2"]


def _booted(parent: subprocess.Popen[bytes], log: Path) -> SystemdMachine:
    deadline = time.monotonic() + BOOT_WITHIN_S
    children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
    while True:
        assert parent.poll() is None, log.read_text()
        first = children.read_text().split()
        if first and Path(f"/proc/{first[0]}/comm").read_text() == "systemd\n":
            machine = SystemdMachine(int(first[0]))
            with contextlib.suppress(AssertionError):
                machine.run("[ $(systemctl is-system-running) = running ]")
                return machine
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.2)


def _remove(cgroup: Path) -> None:
    deadline = time.monotonic() + 30
    while (cgroup / "cgroup.events").read_text().startswith("populated 1") and time.monotonic() < deadline:
        time.sleep(0.05)
    for below in sorted(cgroup.rglob("*"), reverse=True):
        if below.is_dir():
            below.rmdir()
    cgroup.rmdir()
