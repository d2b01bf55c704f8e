"""The aggregator's own database, ``service.sqlite`` beside the store's catalog: one file, so that what belongs together changes
together.  Each group of tables is the matter of the module that reads and writes it."""

from __future__ import annotations

from pathlib import Path

from profiler.store.sqlite_file import SqliteFile, SqliteSchema

FILE_NAME = "service.sqlite"
APPLICATION_ID = 0x534C5356  # "SLSV"
SCHEMA_VERSION = 1


def open_service_file(directory: Path, statements: tuple[str, ...], create: bool) -> SqliteFile:
    """``statements``: the tables of all modules.  ``StoreError``: see ``SqliteFile``."""
    schema = SqliteSchema(
        "service database", APPLICATION_ID, SCHEMA_VERSION, statements, "`slotscope serve` and `token create` make one"
    )
    return SqliteFile(directory / FILE_NAME, schema, create)
