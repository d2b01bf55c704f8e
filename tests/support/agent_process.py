"""A real `slotscope agent`: its file, its process, and what it writes."""

from __future__ import annotations

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
_MARK = "AGENT_OF_TEST"


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
    def mark(self) -> str:
        """Stands in the environment of all that it started, and of nothing else on this machine."""
        return f"{_MARK}={self.config}"

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
                env={**os.environ, "PYTHONPATH": str(ROOT), _MARK: str(self.config), **self.environment},
            )
        return self

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
