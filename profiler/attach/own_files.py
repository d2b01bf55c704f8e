"""The files of a process that may see others under the same paths than slotscope does, as in a container.

A path is no proof there: which build a process has mapped is looked up in its own root directory while it runs, and what was
found is held open, so that it can be read when the process has ended.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from collectors.processes.process_status import status_of
from collectors.targets.attach_target import AttachTarget
from collectors.targets.mapped_files import MappedFile, RootIdentity, mapped_files, root_directory, root_identity
from profiler.model.dso import UNREAD_BUILD, Dso, DsoKind
from profiler.model.mapped_builds import MappedBuilds
from reports.quantities import counted
from symbolize.elf.identity import identity_of
from symbolize.image_file import open_image
from symbolize.locate import Locator

# Root directory, path, number and last change.
_FileState: TypeAlias = tuple[RootIdentity, str, str, int]


@dataclass(slots=True)
class OwnFiles:
    """``locator``: looks in the root directory of the leading process.  ``unread``: why files that it has mapped could not be
    looked at, by path."""

    locator: Locator
    unread: dict[str, str] = field(default_factory=dict)
    _known: dict[_FileState, bytes] = field(default_factory=dict)

    def look(self, target: AttachTarget) -> MappedBuilds | None:
        """What all processes of the target have mapped now; None when all of them see the files that slotscope sees."""
        own, roots = root_identity("self"), _roots(target)
        if own is not None and all(root == own for root in roots.values()):
            return None
        known, self._known = self._known, {}  # what nobody has mapped any more is forgotten
        found: dict[tuple[int, str], bytes] = {}
        for pid, root in roots.items():
            found.update(((pid, file.path), self._build_id(file, root, known)) for file in _mapped(pid))
        self._hold((path, build_id) for (pid, path), build_id in found.items() if roots[pid] == roots.get(target.pid))
        return MappedBuilds(found, has_one_root=len(set(roots.values())) == 1)

    def unread_line(self, target: AttachTarget) -> str:
        """What a reader must know of files that could not be looked at, "" = there is none."""
        if not self.unread:
            return ""
        path, reason = next(iter(self.unread.items()))
        files = f"{counted(len(self.unread), 'file')} of process {target.pid} ({target.name})"
        return (
            f"{files} cannot be read in its root directory, and what they do will have no names ({path}: {reason}): run "
            "slotscope as root, or with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH"
        )

    def _build_id(self, file: MappedFile, root: RootIdentity | None, known: Mapping[_FileState, bytes]) -> bytes:
        """``known``: what was found by the last look."""
        changed_ns = _changed_ns(file)
        if root is None or not changed_ns:
            return self._read(file)
        key = (root, file.path, file.same_file, changed_ns)
        if key not in self._known:
            self._known[key] = known[key] if key in known else self._read(file)
        return self._known[key]

    def _read(self, file: MappedFile) -> bytes:
        image, reason = open_image(file.link)
        if image is None and not file.is_deleted:
            image, reason = open_image(_path_in_root(file))
        if image is not None:
            return identity_of(image)
        if not file.is_deleted:
            self.unread.setdefault(file.path, reason.rpartition(": ")[2] or "no such file")
        return UNREAD_BUILD

    def _hold(self, files: Iterable[tuple[str, bytes]]) -> None:
        for path, build_id in files:
            if build_id != UNREAD_BUILD:
                self.locator.locate(Dso(path, build_id, DsoKind.FILE))


def _path_in_root(file: MappedFile) -> Path:
    return root_directory(file.pid).file(file.path)


def _changed_ns(file: MappedFile) -> int:
    """When the file's content or its place was last changed, 0 = not known.  A file that takes the place of another may get
    its number, too."""
    with contextlib.suppress(OSError):
        return file.link.stat().st_ctime_ns
    with contextlib.suppress(OSError):
        return _path_in_root(file).stat().st_ctime_ns
    return 0


def _roots(target: AttachTarget) -> dict[int, RootIdentity | None]:
    """By ID of the process, of those that run; None where it may not be looked at."""
    members = [status.pid for status in target.members() if not status.is_kernel_thread]
    roots = {pid: root_identity(pid) for pid in members}
    return {pid: root for pid, root in roots.items() if root is not None or _runs(pid)}


def _runs(pid: int) -> bool:
    status = status_of(pid)
    return status is not None and not status.has_ended


def _mapped(pid: int) -> tuple[MappedFile, ...]:
    try:
        return mapped_files(pid)
    except OSError:  # it has ended meanwhile
        return ()
