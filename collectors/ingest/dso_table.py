"""The DSOs of a recording: one row per (path, build ID)."""

from __future__ import annotations

from collections.abc import Iterable

from collectors.perf_data.features import BuildIdEntry
from profiler.model.dso import Dso, DsoKind

KERNEL_NAME = "[kernel]"
UNKNOWN_NAME = "[unknown]"
GUEST_NAME = "[guest]"
# Places are numbered with 16 bits for the DSO; see ``places``.
MAX_DSOS = 65000

_DELETED = " (deleted)"
_ANONYMOUS_PREFIXES = ("//anon", "/dev/zero", "/anon_hugepage", "/SYSV", "/memfd:", "anon_inode:", "[")
_VDSO_NAMES = frozenset({"[vdso]", "[vdso32]", "[vdso64]"})
KERNEL_BUILD_ID_PATHS = ("[kernel.kallsyms]", "[kernel]", "[kernel.vmlinux]")


class DsoTable:
    """Rows are added as mappings ask for them; row 0 is the unknown, row 1 the kernel, row 2 the guest's code."""

    UNKNOWN = 0
    KERNEL = 1
    GUEST = 2

    def __init__(self, build_ids: Iterable[BuildIdEntry]) -> None:
        self._user_ids: dict[str, bytes] = {}
        self._kernel_ids: dict[str, bytes] = {}
        for entry in build_ids:
            (self._kernel_ids if entry.is_kernel else self._user_ids).setdefault(entry.path, entry.build_id)
        kernel_id = next((self._kernel_ids[path] for path in KERNEL_BUILD_ID_PATHS if path in self._kernel_ids), b"")
        self.rows: list[Dso] = [
            Dso(UNKNOWN_NAME, b"", DsoKind.UNKNOWN),
            Dso(KERNEL_NAME, kernel_id, DsoKind.KERNEL),
            Dso(GUEST_NAME, b"", DsoKind.UNKNOWN),
        ]
        self._row_of: dict[tuple[str, bytes], int] = {}
        self._row_of_dso: dict[Dso, int] = {}

    def file(self, recorded_path: str, build_id: bytes) -> int:
        """Row of a user-space mapping; the build ID of the mapping record comes before that of the header's table."""
        key = (recorded_path, build_id)
        row = self._row_of.get(key)
        if row is None:
            path = recorded_path.removesuffix(_DELETED)
            known_id = build_id or self._user_ids.get(path, b"") or self._user_ids.get(recorded_path, b"")
            row = self._row_of[key] = self._add(Dso(path, known_id, file_kind(path)))
        return row

    def module(self, recorded_path: str, build_id: bytes) -> int:
        """Row of a kernel module, shown as "[name]"."""
        name = module_name(recorded_path)
        key = (name, b"")
        row = self._row_of.get(key)
        if row is None:
            known_id = build_id or self._kernel_ids.get(recorded_path, b"")
            row = self._row_of[key] = self._add(Dso(name, known_id, DsoKind.MODULE))
        return row

    def name_kernel_build(self, build_id: bytes) -> None:
        """The kernel's build ID from its own mapping record, where the header has none."""
        if build_id and not self.rows[self.KERNEL].build_id:
            self.rows[self.KERNEL] = Dso(KERNEL_NAME, build_id, DsoKind.KERNEL)

    def _add(self, dso: Dso) -> int:
        row = self._row_of_dso.get(dso)
        if row is None:
            row = self.UNKNOWN
            if len(self.rows) < MAX_DSOS:
                row = len(self.rows)
                self.rows.append(dso)
            self._row_of_dso[dso] = row
        return row


def file_kind(path: str) -> DsoKind:
    """What a user-space mapping of this name is."""
    if path in _VDSO_NAMES:
        return DsoKind.VDSO
    if not path or path.startswith(_ANONYMOUS_PREFIXES):
        return DsoKind.ANONYMOUS
    return DsoKind.FILE


def module_name(path: str) -> str:
    """ "[ext4]" of "[ext4]" and of "/lib/modules/6.1/kernel/fs/ext4/ext4.ko.xz"."""
    if path.startswith("["):
        return path
    return "[" + path.rsplit("/", 1)[-1].split(".ko", 1)[0].replace("-", "_") + "]"


def is_kernel_text(path: str) -> bool:
    """The mapping record of the kernel itself, e.g. "[kernel.kallsyms]_text"."""
    return path.startswith(("[kernel.kallsyms]", "[kernel.vmlinux]", "[kernel]")) or path.endswith("/vmlinux")
