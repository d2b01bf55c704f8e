"""Whether the store and the service's database can be written at this moment."""

from __future__ import annotations

from profiler.errors import StoreError
from profiler.service.aggregator import Aggregator

_PROBE_BYTES = 4096


def check_writable(aggregator: Aggregator) -> None:
    """``StoreError`` says what cannot be written."""
    try:
        with aggregator.store.working_directory() as directory:
            (directory / "probe").write_bytes(bytes(_PROBE_BYTES))
    except OSError as error:
        raise StoreError(f"{aggregator.store.directory}: {error.strerror}") from None
    aggregator.tokens.check_writable()
