"""The root directory of other programs, as of a container: its files by the paths that those programs know."""

from __future__ import annotations

import os
from pathlib import Path

from profiler.model.quick_dataclass import dataclass

_MOST_LINKS = 40
_NOWHERE = Path(os.devnull, "too-many-links")


@dataclass(frozen=True, slots=True)
class RootDirectory:
    """``path``: how it is reached from here.  ``shown_as``: what stands before the paths of its files when they are seen from
    here, "" = they are seen from inside only."""

    path: Path
    shown_as: str = ""

    def inside(self, path: str) -> str:
        """A recorded path as programs inside have it."""
        outer = self.shown_as.rstrip("/")
        return path.removeprefix(outer) if outer and path.startswith(f"{outer}/") else path

    def file(self, path: str) -> Path:
        """Where to open a recorded path.  Symbolic links are followed as they are inside: an absolute one never leads out."""
        waiting = self.inside(path).split("/")[::-1]
        done: list[str] = []
        links = 0
        while waiting:
            part = waiting.pop()
            if part == "..":
                done = done[:-1]
            elif part not in ("", "."):
                target = _link_target(self.path.joinpath(*done, part))
                links += bool(target)
                if links > _MOST_LINKS:
                    return _NOWHERE
                if target.startswith("/"):
                    done = []
                waiting += target.split("/")[::-1]
                done += [] if target else [part]
        return self.path.joinpath(*done)

    def holds(self, file: str) -> bool:
        """Whether this is a file that ``file`` found."""
        return file.startswith(f"{self.path}/")

    def place(self, file: str) -> str:
        """The reverse of ``file``."""
        return file.removeprefix(str(self.path))


def _link_target(path: Path) -> str:
    """ "" of what is no symbolic link."""
    try:
        return os.readlink(path)
    except (OSError, ValueError):
        return ""
