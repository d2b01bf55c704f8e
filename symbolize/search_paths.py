"""Where files of a build ID, or of a recorded path, may lie."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from profiler.model.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class SearchPaths:
    """``debug_directories``: trees laid out like /usr/lib/debug.  ``extra_directories``: searched first; by ``.build-id``, by
    the recorded path below them, and by base name.  ``sysroot``: put before recorded paths; the path itself is not tried then.
    ``debuginfod_urls``: servers that are asked last; none are asked unless they are named here.
    """

    debug_directories: tuple[Path, ...] = (Path("/usr/lib/debug"),)
    extra_directories: tuple[Path, ...] = ()
    sysroot: Path | None = None
    debuginfod_urls: tuple[str, ...] = ()

    @property
    def trees(self) -> tuple[Path, ...]:
        """Directories with a ``.build-id`` below, in order."""
        below = [self.sysroot / "usr/lib/debug"] if self.sysroot is not None else []
        return (*self.extra_directories, *below, *self.debug_directories)

    def binaries(self, path: str, build_id: bytes) -> Iterator[Path]:
        """Where the binary that was recorded at ``path`` may lie."""
        relative = path.lstrip("/")
        for directory in self.extra_directories:
            yield directory / relative
            yield directory / Path(relative).name
        yield self.on_system(path)
        yield from self.by_build_id(build_id)

    def on_system(self, path: str) -> Path:
        """An absolute path as it is here."""
        return self.sysroot / path.lstrip("/") if self.sysroot is not None else Path(path)

    def by_build_id(self, build_id: bytes) -> Iterator[Path]:
        """Where the binary of a build ID may lie; last in perf's own cache, in its older layout too."""
        yield from self._in_trees(build_id, "")
        yield from self._in_perf_cache(build_id, "elf")

    def debug_files(self, build_id: bytes) -> Iterator[Path]:
        """Where the debug file of a build ID may lie."""
        yield from self._in_trees(build_id, ".debug")
        yield from self._in_perf_cache(build_id, "debug")

    def packages(self, build_id: bytes) -> Iterator[Path]:
        """Where the package of .dwo files of a build ID may lie."""
        yield from self._in_trees(build_id, ".dwp")

    def _in_trees(self, build_id: bytes, suffix: str) -> Iterator[Path]:
        if len(build_id) < 2:
            return
        name = build_id.hex()
        for directory in self.trees:
            yield directory / ".build-id" / name[:2] / (name[2:] + suffix)

    @staticmethod
    def _in_perf_cache(build_id: bytes, kind: str) -> Iterator[Path]:
        home = os.environ.get("HOME")
        if home and len(build_id) >= 2:
            entry = Path(home) / ".debug" / ".build-id" / build_id.hex()[:2] / build_id.hex()[2:]
            yield entry / kind
            if kind == "elf":
                yield entry
