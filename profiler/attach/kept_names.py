"""Keeps the files in which the names of recorded functions stand, where they are found in the target's root directory only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from profiler.errors import StoreError
from profiler.model.capture import Capture
from profiler.model.dso import UNREAD_BUILD, Dso, DsoKind
from profiler.store.kept_files import KeptKind, keep_file
from profiler.store.store import Store
from symbolize.elf.image import ElfImage
from symbolize.locate import LocatedBinary, Locator


@dataclass(slots=True)
class KeptNames:
    """``most_bytes``: of all files together.  ``problem``: why a file is not kept, "" = all are."""

    store: Store
    most_bytes: int
    problem: str = ""
    _bytes: int = 0
    _settled: set[bytes] = field(default_factory=set)
    _here: Locator = field(default_factory=Locator)

    def keep(self, session: str, capture: Capture, locator: Locator) -> None:
        """Of all files that samples fell into.  ``locator``: of the target."""
        for row in sorted(set(capture.frames.dso.tolist()) - {-1}):
            dso = capture.dsos[row]
            if dso.kind == DsoKind.FILE and dso.build_id not in (b"", UNREAD_BUILD, *self._settled):
                self._settled.add(dso.build_id)
                self._keep(session, dso, locator.locate(dso))
        self._here.let_go(0)

    def _keep(self, session: str, dso: Dso, found: LocatedBinary) -> None:
        here = self._here.locate(dso)
        if here.image is not None and bool(here.debug_image) == bool(found.debug_image):
            return
        try:
            for build_id, kind, image in _files(dso, found):
                self._bytes += len(image.data)
                if self._bytes > self.most_bytes:
                    raise StoreError(f"{dso.path}: more than {self.most_bytes >> 20} MiB of files would be kept for a session")
                keep_file(self.store, session, build_id.hex(), kind, image.data)
        except StoreError as error:
            self.problem = self.problem or str(error)


def _files(dso: Dso, found: LocatedBinary) -> Iterator[tuple[bytes, KeptKind, ElfImage]]:
    if found.image is not None:
        yield dso.build_id, KeptKind.BINARY, found.image
    if found.debug_image is not None:
        yield dso.build_id, KeptKind.DEBUG, found.debug_image
    if found.linked_files is None:
        return
    package, supplementary = found.linked_files.package(), found.linked_files.supplementary()
    if package is not None:
        yield dso.build_id, KeptKind.PACKAGE, package
    if supplementary is not None:
        yield supplementary.build_id, KeptKind.DEBUG, supplementary
