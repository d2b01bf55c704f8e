"""Directories whose names survive a power cut: what is synced into one that its parent has forgotten is lost all the same."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def make_directory(directory: Path, mode: int = 0o777) -> None:
    """Makes it with this mode, and above it what is missing, unless it is there.  ``OSError``."""
    if directory.is_dir():
        return
    try:
        directory.mkdir(mode, exist_ok=True)
    except FileNotFoundError:
        make_directory(directory.parent)
        directory.mkdir(mode, exist_ok=True)
    with contextlib.suppress(PermissionError):  # one in which we may make files and not see them
        sync_directory(directory.parent)


def sync_directory(directory: Path) -> None:
    """Its names are durable: of files that were made, linked, renamed or removed in it.  ``OSError``."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
