"""Where an aggregator's store keeps the debug files that agents sent: laid out as debuggers and our own search expect it."""

from __future__ import annotations

from pathlib import Path

DEBUG_SUFFIX = ".debug"


def debug_directory(store_directory: Path) -> Path:
    """The tree's root; it is there once a file was sent."""
    return store_directory / "debug"


def debug_file(store_directory: Path, build_id: str) -> Path:
    """``build_id``: lower-case hex of at least two bytes."""
    return debug_directory(store_directory) / ".build-id" / build_id[:2] / f"{build_id[2:]}{DEBUG_SUFFIX}"


def kept_build_ids(store_directory: Path) -> tuple[str, ...]:
    """Of every file in the tree, in order."""
    found = (debug_directory(store_directory) / ".build-id").glob(f"*/*{DEBUG_SUFFIX}")
    return tuple(sorted(path.parent.name + path.name.removesuffix(DEBUG_SUFFIX) for path in found))
