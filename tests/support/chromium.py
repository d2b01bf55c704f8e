"""A headless Chromium, driven over the pipes of its DevTools protocol with nothing but the standard library.

Messages are JSON, each ended by a zero byte: commands go in at the browser's file descriptor 3, answers and events come out at
its 4.  https://chromedevtools.github.io/devtools-protocol/
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Message = dict[str, Any]
_TIMEOUT_S = 30.0
# Where no inherited descriptor lies.
_OUT_OF_THE_WAY = 50


@dataclass(slots=True)
class Visit:
    """What came of a page: ``status`` of its own address, every request's URL, and what its console said."""

    status: int = 0
    requests: list[str] = field(default_factory=list)
    console: list[str] = field(default_factory=list)
    is_loaded: bool = False


class Chromium:
    """Use it as a context; ``profile``: a directory for what the browser keeps."""

    def __init__(self, program: str, profile: Path) -> None:
        self._number = 0
        self._buffer = b""
        self._visit = Visit()
        commands, self._commands = _pipe()
        self._events, events = _pipe()
        flags = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe")
        quiet = ("--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync")

        def place_pipes() -> None:
            os.dup2(commands, 3)
            os.dup2(events, 4)

        self._process = subprocess.Popen(
            [program, *flags, *quiet, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(3, 4),
            preexec_fn=place_pipes,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(commands)
        os.close(events)
        target = self._ask("Target.createTarget", {"url": "about:blank"})["targetId"]
        self._session = self._ask("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._ask("Browser.close", {})
            self._process.wait(_TIMEOUT_S)
        finally:
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
            os.close(self._commands)
            os.close(self._events)

    def visit(self, url: str) -> Visit:
        """Opens the address and waits until all of it is loaded."""
        return self.follow(lambda: self.ask("Page.navigate", url=url))

    def click(self, selector: str) -> Visit:
        """Clicks what leads to another page."""
        return self.follow(lambda: self.evaluate(f"document.querySelector({json.dumps(selector)}).click()"))

    def follow(self, act: Callable[[], object]) -> Visit:
        """Does what makes the browser go to another page, and waits until all of it is loaded."""
        self._visit = visit = Visit()
        act()
        deadline = time.monotonic() + _TIMEOUT_S
        while not visit.is_loaded:
            self._take(self._receive(deadline))
        return visit

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page, as JSON can hold it."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def set_width(self, width: int) -> None:
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)

    def ask(self, method: str, **parameters: Any) -> Message:
        """A command to the page; its result."""
        return self._ask(method, parameters, self._session)

    def _ask(self, method: str, parameters: Message, session: str = "") -> Message:
        self._number += 1
        command: Message = {"id": self._number, "method": method, "params": parameters}
        if session:
            command["sessionId"] = session
        os.write(self._commands, json.dumps(command).encode() + b"\0")
        deadline = time.monotonic() + _TIMEOUT_S
        while True:
            message = self._receive(deadline)
            if message.get("id") == self._number:
                assert "error" not in message, message["error"]
                result: Message = message["result"]
                return result
            self._take(message)

    def _receive(self, deadline: float) -> Message:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._events], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "the browser says nothing"
            data = os.read(self._events, 1 << 16)
            assert data, "the browser is gone"
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        received: Message = json.loads(message)
        return received

    def _take(self, event: Message) -> None:
        parameters, visit = event.get("params", {}), self._visit
        match event.get("method"):
            case "Network.requestWillBeSent":
                visit.requests.append(parameters["request"]["url"])
            case "Network.responseReceived" if parameters["type"] == "Document":
                visit.status = parameters["response"]["status"]
            case "Runtime.consoleAPICalled":
                visit.console.append(str(parameters["args"]))
            case "Runtime.exceptionThrown":
                visit.console.append(str(parameters["exceptionDetails"]))
            case "Log.entryAdded":
                visit.console.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}")
            case "Page.loadEventFired":
                visit.is_loaded = True


def _pipe() -> tuple[int, int]:
    """Its ends at high numbers: 3 and 4 are to be the browser's."""
    low = os.pipe()
    high = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, _OUT_OF_THE_WAY) for end in low)
    for end in low:
        os.close(end)
    return high[0], high[1]
