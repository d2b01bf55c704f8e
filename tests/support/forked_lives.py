"""Many short lives of one program: a process that has imported everything is forked for each, and each is killed before a
certain call of its own, or lives to its end.

The program is a function ``live(directory, say)`` of a module below ``tests``; ``say(text)`` tells the test one line, before
anything that comes later can kill it.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen

from support.held_calls import Call, Verdict, held_calls
from support.power_cuts import DurableTree

TESTS = Path(__file__).resolve().parents[1]
_ENDED = "ended "


@dataclass(frozen=True, slots=True)
class Life:
    """``said``: its lines.  ``died_at``: the call that it was killed before, None = it came to its end."""

    said: tuple[str, ...]
    died_at: Call | None


@dataclass(slots=True)
class _Death:
    """``left``: boundaries until then.  ``cut``: where the directory is put as a power cut would leave it at that moment."""

    tree: DurableTree
    left: int
    cut: Path
    at: Call | None = None


class Lives:
    """Use ``forked_lives``.  ``is_boundary``: which calls are counted."""

    def __init__(self, is_boundary: Callable[[Call], bool]) -> None:
        self._is_boundary = is_boundary
        self._death: _Death | None = None
        self._process: Popen[str] | None = None

    def judge(self, call: Call) -> Verdict:
        death = self._death
        if death is None or death.at is not None:
            return Verdict.GO_ON
        if self._is_boundary(call):
            death.left -= 1
            if death.left == 0:
                death.at = call
                death.tree.cut(death.cut)
                return Verdict.KILL
        death.tree.saw(call)
        return Verdict.GO_ON

    def begin(self, process: Popen[str]) -> None:
        self._process = process
        assert self._lines() == ["ready"]

    def rehearse(self, directory: Path) -> None:
        """A life of the process itself, before any other, in a directory of its own: what is imported late is there in all."""
        assert self._live(directory)[1] == 0

    def whole(self, directory: Path) -> tuple[str, ...]:
        """What a life says that nobody ends."""
        said, code = self._live(directory)
        assert code == 0, said
        return said

    def killed(self, directory: Path, number: int, cut: Path) -> Life:
        """A life that ends before the boundary of this number, from 1, if it has so many; ``cut`` becomes what a power cut at
        its end would have left of the directory."""
        self._death = death = _Death(DurableTree(directory), number, cut)
        try:
            said, code = self._live(directory)
            assert code == (0 if death.at is None else -signal.SIGKILL), said
            if death.at is None:
                death.tree.cut(cut)
        finally:
            self._death = None
            death.tree.close()
        return Life(said, death.at)

    def _live(self, directory: Path) -> tuple[tuple[str, ...], int]:
        """(Its lines, its exit code)."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(f"{directory}\n")
        self._process.stdin.flush()
        *said, end = self._lines()
        return tuple(said), int(end.removeprefix(_ENDED))

    def _lines(self) -> list[str]:
        """Up to the one that ends a life."""
        assert self._process is not None
        assert self._process.stdout is not None
        lines = []
        for line in self._process.stdout:
            lines.append(line.rstrip("\n"))
            if lines[-1] == "ready" or lines[-1].startswith(_ENDED):
                return lines
        raise AssertionError(f"the process that is forked ended: {lines}")


@contextlib.contextmanager
def forked_lives(function: str, is_boundary: Callable[[Call], bool]) -> Iterator[Lives]:
    """``function``: "package.module:function".  ``CannotHold``."""
    environment = {**os.environ, "PYTHONPATH": f"{TESTS.parent}{os.pathsep}{TESTS}"}
    lives = Lives(is_boundary)
    with held_calls([sys.executable, "-m", "support.forked_lives", function], lives.judge, environment) as process:
        lives.begin(process)
        yield lives


def _fork_for_each(live: Callable[[Path, Callable[[str], None]], None]) -> None:
    def say(text: str) -> None:
        os.write(1, f"{text}\n".encode())

    say("ready")
    live(Path(sys.stdin.readline().rstrip("\n")), say)
    say(f"{_ENDED}0")
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                live(Path(line.rstrip("\n")), say)
                os._exit(0)
            except BaseException:  # noqa: BLE001 -- the process ends with it
                traceback.print_exc()
                os._exit(1)
        say(f"{_ENDED}{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}")


if __name__ == "__main__":
    module, _, name = sys.argv[1].partition(":")
    _fork_for_each(getattr(importlib.import_module(module), name))
