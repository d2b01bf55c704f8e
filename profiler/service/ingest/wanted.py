"""Which files an agent is asked for: those in its own captures whose functions have no names here."""

from __future__ import annotations

from pathlib import Path

from profiler.protocol.upload import WantedFiles
from profiler.service.ingest.debug_files import SymbolRank, rank_of
from profiler.service.ingest.ingest import Ingest
from symbolize.elf.identity import is_build
from symbolize.image_file import open_image
from symbolize.search_paths import SearchPaths


def wanted_files(ingest: Ingest, agent: str) -> WantedFiles:
    """Build IDs for which there is less than a symbol table, but for those that this agent has answered.

    Files are looked for by build ID only, never by the path that an agent recorded.
    """
    answered = ingest.records.answered_build_ids(agent)
    asked = [build_id for build_id in ingest.captured.of_agent(agent) if build_id not in answered]
    return WantedFiles(tuple(build_id for build_id in asked if not _has_names(ingest, build_id)))


def _has_names(ingest: Ingest, build_id: str) -> bool:
    if ingest.debug_tree.rank(build_id) >= SymbolRank.SYMBOLS:
        return True
    search, wanted = SearchPaths(), bytes.fromhex(build_id)
    return any(_rank(path, wanted) >= SymbolRank.SYMBOLS for path in (*search.debug_files(wanted), *search.by_build_id(wanted)))


def _rank(path: Path, build_id: bytes) -> SymbolRank:
    image, _ = open_image(path)
    return rank_of(image) if image is not None and is_build(image, build_id) else SymbolRank.NOTHING
