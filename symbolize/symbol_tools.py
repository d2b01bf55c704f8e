"""The search for binaries and the symbolizer on it, as a command and the pages use them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.errors import UsageError
from profiler.model.quick_dataclass import dataclass

if TYPE_CHECKING:
    from symbolize.locate import Locator
    from symbolize.symbolizer import Symbolizer


@dataclass(frozen=True, slots=True)
class SymbolTools:
    """One search for binaries, shared by unwinding and symbolization."""

    locator: Locator
    symbolizer: Symbolizer


def symbol_tools(debug_dirs: Sequence[str], sent: Path | None = None) -> SymbolTools:
    """``sent``: where debug files that agents sent lie, or may lie one day.  ``UsageError`` when one of ``debug_dirs`` does not
    exist."""
    from symbolize.cache import SymbolCache, default_cache_directory
    from symbolize.debuginfod import configured_servers
    from symbolize.kernel_cache import KernelSymbolCache
    from symbolize.locate import Locator, SearchPaths
    from symbolize.symbolizer import Symbolizer
    from symbolize.unwind_cache import UnwindRuleCache

    for directory in debug_dirs:
        if not Path(directory).is_dir():
            raise UsageError(f"--debug-dir {directory}: no such directory")
    cache_directory = default_cache_directory()
    cache = SymbolCache(cache_directory)
    extra = tuple(Path(directory) for directory in debug_dirs)
    of_store = (sent,) if sent is not None else ()
    search = SearchPaths((*of_store, *SearchPaths().debug_directories), extra, debuginfod_urls=configured_servers())
    locator = Locator(search, KernelSymbolCache(cache_directory), UnwindRuleCache(cache))
    return SymbolTools(locator, Symbolizer(locator, cache))
