"""Every capture that is ever seen whole in an agent's spool: looked for again and again by a thread of its own."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

LOOK_S = 0.01


class SpoolWatch:
    """``seen``: by SHA-256 of its bytes, the file."""

    def __init__(self, spools: Sequence[Path]) -> None:
        self._spools = spools
        self._known: set[Path] = set()
        self.seen: dict[str, Path] = {}

    def look(self) -> None:
        for spool in self._spools:
            # A file has its name only when it is whole, and goes, with its directory, only when the aggregator has it.
            with contextlib.suppress(FileNotFoundError):
                for path in set(spool.glob("store/captures/*/*.capture")) - self._known:
                    self.seen[hashlib.sha256(path.read_bytes()).hexdigest()] = path
                    self._known.add(path)


@contextlib.contextmanager
def watched(spools: Sequence[Path]) -> Iterator[SpoolWatch]:
    watch, is_over = SpoolWatch(spools), threading.Event()

    def look_on() -> None:
        while not is_over.wait(LOOK_S):
            watch.look()

    thread = threading.Thread(target=look_on)
    thread.start()
    try:
        yield watch
        assert thread.is_alive(), "nobody looks any more"
    finally:
        is_over.set()
        thread.join()
