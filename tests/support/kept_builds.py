"""Programs of tests that are built once and kept between sessions, outside the checkout: in ``$XDG_CACHE_HOME/slotscope-tests``
or ``~/.cache/slotscope-tests``."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "slotscope-tests"


def key_of(made_of: Iterable[str | bytes]) -> str:
    """A name for what is made of these: sources, options, versions of tools."""
    parts = (part.encode() if isinstance(part, str) else part for part in made_of)
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:24]


def kept(key: str, name: str, build: Callable[[Path], None]) -> Path:
    """The file of this name that ``build`` has put into the directory that it is given, now or before; two processes may ask
    for the same at the same time."""
    directory = CACHE / key
    if not (directory / name).exists():
        partial = directory.with_name(f"{key}.{os.getpid()}")
        partial.mkdir(parents=True, exist_ok=True)
        try:
            build(partial)
            try:
                partial.rename(directory)
            except OSError:
                if not (directory / name).exists():  # no other process was faster
                    raise
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return directory / name
