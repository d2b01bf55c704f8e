"""What only a collection of garbage frees: objects that refer to each other."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def unreachable_objects() -> Iterator[list[str]]:
    """A list that holds, at its end, the type of every object that was left behind meanwhile and that nothing reaches."""
    found: list[str] = []
    gc.collect()
    gc.disable()
    try:
        yield found
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        found += sorted(type(left).__qualname__ for left in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
