"""What a running process has mapped, and the root directory in which it knows these files by their paths.

perf looks at paths too, but not in the root directory of a process that has ended, is in a chroot, or may not be entered; then
it takes the build ID of whatever has that path here.
"""

from __future__ import annotations

import os
from pathlib import Path

from profiler.model.quick_dataclass import dataclass
from symbolize.root_directory import RootDirectory

_DELETED = " (deleted)"


@dataclass(frozen=True, slots=True)
class MappedFile:
    """``path``: as /proc/PID/maps shows it.  ``same_file``: equal while the process has the same file there.  ``link``: opens
    that file, for whoever may, even where no path leads to it."""

    pid: int
    path: str
    same_file: str
    link: Path

    @property
    def is_deleted(self) -> bool:
        return self.path.endswith(_DELETED)

    @property
    def plain_path(self) -> str:
        return self.path.removesuffix(_DELETED)


@dataclass(frozen=True, slots=True)
class RootIdentity:
    """Equal for processes that find the same files under the same paths."""

    mount_namespace: str
    device: int
    inode: int


def mapped_files(pid: int) -> tuple[MappedFile, ...]:
    """Files with executable mappings, each once, in the order of their addresses.  ``OSError``."""
    found: dict[str, MappedFile] = {}
    for line in Path("/proc", str(pid), "maps").read_text(errors="surrogateescape").splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and "x" in fields[1] and fields[5].startswith("/"):
            link = Path("/proc", str(pid), "map_files", "-".join(f"{int(end, 16):x}" for end in fields[0].split("-")))
            found.setdefault(fields[5], MappedFile(pid, fields[5], f"{fields[3]} {fields[4]}", link))
    return tuple(found.values())


def root_directory(pid: int) -> RootDirectory:
    """That of a process, for as long as it runs."""
    path = Path("/proc", str(pid), "root")
    try:
        return RootDirectory(path, os.readlink(path))
    except OSError:
        return RootDirectory(path)


def root_identity(pid: int | str) -> RootIdentity | None:
    """None when it may not be looked at, or the process is gone.  ``pid``: also "self"."""
    try:
        found = os.stat(f"/proc/{pid}/root/")
        return RootIdentity(os.readlink(f"/proc/{pid}/ns/mnt"), found.st_dev, found.st_ino)
    except OSError:
        return None
