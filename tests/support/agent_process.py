"""A real `slotscope agent`: its file, its process, and what it writes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from support.fake_aggregator import TOKEN

ROOT = Path(__file__).resolve().parents[2]
# In the environment of all that an agent starts: other tests have agents, too.
_OWN = "AGENT_OF_A_TEST"


def write_config(directory: Path, server: str, body: str = "", token: str = TOKEN, limits: str = "") -> Path:
    """agent.toml, token and spool below ``directory``; the file's path."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "token").touch(mode=0o600)
    (directory / "token").write_text(token + "\n")
    path = directory / "agent.toml"
    path.write_text(f'server = "{server}"\ntoken_file = "token"\nspool = "spool"\n[limits]\n{limits}\n{body}')
    return path


@dataclass(slots=True)
class AgentProcess:
    """``log``: what it wrote to standard error, over several starts."""

    config: Path
    log: Path
    environment: Mapping[str, str]
    launcher: tuple[str, ...] = ("-m", "profiler.cli.main")
    process: subprocess.Popen[bytes] | None = None

    @property
    def spool(self) -> Path:
        return self.config.parent / "spool"

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def start(self) -> AgentProcess:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, *self.launcher, "agent", "--config", str(self.config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": str(ROOT), _OWN: str(self.config), **self.environment},
            )
        return self

    def processes_with(self, word: str) -> list[int]:
        """Process IDs of what it has started, also before it was killed, that has this word in its command line."""
        own = f"{_OWN}={self.config}\0".encode()
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and word.encode() in (entry / "cmdline").read_bytes():
                    found += [int(entry.name)] if own in (entry / "environ").read_bytes() else []
        return found

    def are_gone_within(self, seconds: float, *words: str) -> bool:
        deadline = time.monotonic() + seconds
        while any(self.processes_with(word) for word in words):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def end(self, seconds: float = 90.0) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def stop(self) -> None:
        """However it stands."""
        if self.process is not None and self.process.poll() is None:
            self.end()

    def wait_for_log(self, text: str, seconds: float = 60.0) -> None:
        deadline = time.monotonic() + seconds
        while text not in self.log.read_text():
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.05)


def agent(config: Path, **environment: str) -> AgentProcess:
    return AgentProcess(config, config.parent / "agent.log", environment)
