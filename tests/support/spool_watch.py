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
            for path in set(spool.glob("store/captures/*/*.capture")) - self._known:
                # It has its name only when it is whole, and goes only when the aggregator has it.
                with contextlib.suppress(FileNotFoundError):
                    self.seen[hashlib.sha256(path.read_bytes()).hexdigest()] = path
                    self._known.add(path)


@contextlib.contextmanager
def watched(spools: Sequence[Path]) -> Iterator[SpoolWatch]:
    watch, is_over = SpoolWatch(spools), threading.Event()
    errors: list[BaseException] = []

    def look_on() -> None:
        try:
            while not is_over.wait(LOOK_S):
                watch.look()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=look_on)
    thread.start()
    try:
        yield watch
    finally:
        is_over.set()
        thread.join()
    assert not errors, errors
