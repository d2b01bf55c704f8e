"""Every command of docs/deploy.md, in its order, on one server and three hosts of their own.

What stands for what: 192.0.2.10 is the server's address in the test's network; the experiment has one run where the page has
two; two of the hosts get what the third one installed; ssh and scp go to the other machine without a network
(tests/support/page_machines.py); the checkout is this one; pip has no index and finds the packages that the tests run with.
Blocks marked `not-run` install packages, or speak to systemd: test_real_systemd.py runs the units that they start.
"""

from __future__ import annotations

import os
import re
import shutil
import site
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from support.page_machines import Block, Machine, blocks_of, machines, why_not

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
BLOCKS = blocks_of(PAGE)
HOSTS = ("host1", "host2", "host3")
PLACES = {"server", "hosts", *HOSTS}
WAYS = {"stays", "later", "stopped", "not-run"}
# What a command that stays writes when it is there.
SIGNS = {"slotscope agent": "for https://", " serve ": "serving ", "epoch-fast": ""}
# What is printed, and how often, when all has arrived that a command is to show.
COMPLETE = {"-serve hosts\n": (" ready ", len(HOSTS)), "report node": ("2 runs", 1)}
ARRIVES_WITHIN_S = 90
ADDRESS = "192.0.2.10"
RUNS_OF_THE_PAGE, RUNS = 2, 1


def test_every_block_says_where_it_is_run() -> None:
    assert len(BLOCKS) >= 20
    for block in BLOCKS:
        assert set(block.where) <= PLACES | WAYS, block
        assert len(PLACES & set(block.where)) == 1, block


def test_only_what_needs_systemd_or_the_network_is_not_run() -> None:
    needed = ("apt-get", "systemctl", "--behind-proxy")
    for block in BLOCKS:
        if "not-run" in block.where:
            assert any(word in block.script for word in needed), block


@pytest.fixture
def fleet(tmp_path: Path, perf: str) -> Iterator[dict[str, Machine]]:
    if why_not():
        pytest.skip(why_not())
    for program in ("gcc", "openssl", "curl"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    names = {"aggregator": "server", **{host: host for host in HOSTS}}
    with machines(tmp_path, names, _environment(tmp_path)) as made:
        _mount_checkout(made["server"], tmp_path)
        yield made


def _environment(directory: Path) -> dict[str, str]:
    """pip builds and installs without an index: everything but slotscope is there."""
    packages = directory / "packages"
    packages.mkdir()
    for path in Path(site.getsitepackages()[0]).iterdir():
        if not path.name.startswith(("slotscope", "__editable__", "pip")) and path.suffix != ".pth":
            (packages / path.name).symlink_to(path)
    programs = [directory for directory in os.environ["PATH"].split(os.pathsep) if not directory.startswith(sys.prefix)]
    return {
        "PATH": os.pathsep.join(["/usr/local/bin", str(Path(sys.executable).resolve().parent), *programs]),
        "HOME": "/root",
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(packages),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",
        "PIP_NO_CACHE_DIR": "1",
        "PIP_NO_COMPILE": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


def _mount_checkout(server: Machine, directory: Path) -> None:
    base = directory / "server"
    server.run(
        f"mkdir slotscope {base}/changes/checkout {base}/work/checkout\nmount -t overlay overlay "
        f"-o lowerdir={ROOT},upperdir={base}/changes/checkout,workdir={base}/work/checkout slotscope"
    )


@dataclass(slots=True)
class Reading:
    """The page as it is followed.  ``printed``: by line of the block, what it printed on each machine."""

    machines: dict[str, Machine]
    logs: Path
    printed: dict[int, list[str]] = field(default_factory=dict)

    def follow(self, block: Block) -> None:
        places = HOSTS if "hosts" in block.where else tuple(PLACES & set(block.where))
        script = block.script.replace(ADDRESS, self.machines["server"].host.address)
        script = script.replace(f"\nruns = {RUNS_OF_THE_PAGE}\n", f"\nruns = {RUNS}\n")
        if "stopped" in block.where:
            self.machines["server"].interrupt()
        if "hosts" in block.where and "python3 -m venv" in script:
            self.printed[block.line] = [self._at(HOSTS[0], block, script)]
            self._copy_installation()
            return
        with ThreadPoolExecutor(len(HOSTS)) as threads:
            self.printed[block.line] = list(threads.map(lambda place: self._at(place, block, script), places))

    def _at(self, place: str, block: Block, script: str) -> str:
        machine = self.machines[place]
        if "stays" in block.where:
            sign = next(sign for word, sign in SIGNS.items() if word in script)
            machine.start(script, self.logs / f"{place}-{block.line}.log", sign)
            return ""
        deadline = time.monotonic() + ARRIVES_WITHIN_S
        while True:
            try:
                printed = machine.run(script)
            except AssertionError:
                if "later" not in block.where or time.monotonic() > deadline:
                    raise
            else:
                if all(printed.count(sign) == times for word, (sign, times) in COMPLETE.items() if word in script):
                    return printed
                assert time.monotonic() < deadline, printed
            time.sleep(1)

    def _copy_installation(self) -> None:
        first, *others = (self.machines[host] for host in HOSTS)
        for other in others:
            for path in ("opt/slotscope", "usr/local/bin/slotscope"):
                subprocess.run(["cp", "-a", first.root / path, other.root / path], check=True)

    def of(self, words: str) -> str:
        """What the only block with these words in it printed."""
        (line,) = [block.line for block in BLOCKS if words in block.script and "not-run" not in block.where]
        return "".join(self.printed[line])


@pytest.mark.perf
@pytest.mark.beside
def test_every_command_of_the_page(fleet: dict[str, Machine], tmp_path: Path) -> None:
    reading, server = Reading(fleet, tmp_path), fleet["server"]
    for block in BLOCKS:
        if "not-run" not in block.where:
            reading.follow(block)
    check_first_experiment(reading.of("experiment run"))
    samples = {name: int(count) for name, count in re.findall(r"^(\w+) .* (\d+)$", reading.of("report node"), re.MULTILINE)}
    assert samples["shuffle_list"] > samples["merkleize"] > 0
    assert "will not expire" in reading.of("-checkend")
    assert re.search(r"^laptop +reader .* revoked ", reading.of("slotscope-serve.old"), re.MULTILINE)
    check_restored(reading, server)


def check_first_experiment(printed: str) -> None:
    """Both builds ran on every host, and -O2 is faster than -O0 beyond doubt."""
    assert "round 2 of 2: finished" in printed
    assert re.search(r"^- \*\*fast: epoch -.* down", printed, re.MULTILINE)
    (arms,) = re.findall(r"^\*\*epoch\*\* .*\n\n- base: (.*)\n- fast: (.*)$", printed, re.MULTILINE)
    for values in arms:
        assert [value.split()[0] for value in values.split(", ")] == list(HOSTS)


def check_restored(reading: Reading, server: Machine) -> None:
    """The aggregator goes on from the backup, the agents find it again, and nothing but what came later is missing."""
    before = server.run("slotscope --store /var/lib/slotscope-serve.old list")
    after = server.run("slotscope --store /var/lib/slotscope-serve list")
    arms = [[line.split()[:2] for line in listed.splitlines()[1:]] for listed in (before, after)]
    assert arms[0] == arms[1]
    assert [arm for _, arm in arms[0]] == ["base", "fast", "node"]
    for block in BLOCKS:
        if " serve " in block.script and "stays" in block.where:
            reading.follow(block)
    is_heard = next(block for block in BLOCKS if block.script.endswith(" hosts\n"))
    reading.follow(is_heard)
    for machine in reading.machines.values():
        for _, log in machine.started:
            assert "Traceback" not in log.read_text()
            assert "slsc_" not in log.read_text()
