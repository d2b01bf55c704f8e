"""DSOs: the files (and the parts of the kernel) that code came from."""

from __future__ import annotations

from enum import IntEnum

from profiler.model.quick_dataclass import dataclass


class DsoKind(IntEnum):
    """What a DSO's frame addresses mean."""

    FILE = 0  # an ELF file; frames hold file offsets
    KERNEL = 1  # shown as "[kernel]"; frames hold runtime addresses
    MODULE = 2  # kernel module "[name]"; frames hold runtime addresses
    VDSO = 3  # shown as "[vdso]"; frames hold offsets into its ELF image
    ANONYMOUS = 4  # JIT or anonymous memory; frames hold runtime addresses
    UNKNOWN = 5  # no mapping covered the address; frames hold runtime addresses
    SOURCE = 6  # a source file, known in place of the code's own; frames hold line numbers, 0 = unknown


@dataclass(frozen=True, slots=True)
class Dso:
    """``path`` as the kernel reported it without " (deleted)"; ``build_id`` raw bytes, empty when not known."""

    path: str
    build_id: bytes
    kind: DsoKind

    @property
    def name(self) -> str:
        """The short name: base name of a file, "[kernel]", "[vdso]", "[module]", "[unknown]"."""
        return self.path if self.path.startswith("[") else self.path.rsplit("/", 1)[-1]
