"""Whether a directory holds a store: asked by commands that only read files, for which the store itself is not imported."""

from __future__ import annotations

from pathlib import Path

CATALOG_NAME = "catalog.sqlite"


def is_store(directory: Path) -> bool:
    return (directory / CATALOG_NAME).exists()
