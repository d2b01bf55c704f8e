"""What a power cut would leave of a directory: of every file what was synced last, of every directory the names that it had
when it was synced last, and nothing else.

A disk may keep more than that, and never has to.  Files that have a name and were never synced are left empty.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from support.held_calls import SYNCS, Call


class DurableTree:
    """Begins with everything that is below ``root`` now; ``saw`` is told of every call before it is done."""

    def __init__(self, root: Path) -> None:
        self._contents: dict[int, bytes] = {}
        self._names: dict[int, dict[str, int]] = {}
        # Open, so that no number is given to another file.
        self._held: dict[int, int] = {}
        self._root = self._hold(root)
        for directory, _, files in os.walk(root):
            self._sync(Path(directory))
            for name in files:
                self._sync(Path(directory, name))

    def saw(self, call: Call) -> None:
        """A sync counts when it begins: who asked for it waits for it, and whatever else is written meanwhile is not in it."""
        if call.name in SYNCS:
            self._sync(call.file)

    def cut(self, into: Path) -> Path:
        """The directory as it would be after a power cut now; ``into`` is made."""
        self._write(self._root, into)
        return into

    def close(self) -> None:
        for descriptor in self._held.values():
            os.close(descriptor)
        self._held.clear()

    def _sync(self, path: Path) -> None:
        found = self._hold(path)
        if found in self._names:
            children = {name: self._hold(path / name, follow=False) for name in os.listdir(path)}
            self._names[found] = children
        else:
            self._contents[found] = path.read_bytes()

    def _hold(self, path: Path, follow: bool = True) -> int:
        """The number of a file; of one that is new nothing is durable yet."""
        descriptor = os.open(path, os.O_PATH | (0 if follow else os.O_NOFOLLOW) | os.O_CLOEXEC)
        state = os.fstat(descriptor)
        if state.st_ino in self._held:
            os.close(descriptor)
        else:
            self._held[state.st_ino] = descriptor
            if stat.S_ISDIR(state.st_mode):
                self._names[state.st_ino] = {}
            else:
                self._contents[state.st_ino] = b""
        return state.st_ino

    def _write(self, number: int, into: Path) -> None:
        if number in self._contents:
            into.write_bytes(self._contents[number])
            return
        into.mkdir()
        for name, child in self._names[number].items():
            self._write(child, into / name)
