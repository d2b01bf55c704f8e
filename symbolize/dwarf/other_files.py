"""What a file's debug information needs of other files, and how it asks for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from symbolize.elf.image import ElfImage


class OtherFiles(Protocol):
    """Finds files by what the debug information calls them.  Nothing is opened before it is asked for."""

    def package(self) -> ElfImage | None:
        """The file that has the units of all .dwo files (.dwp), opened once."""

    def split_files(self, name: str, compilation_directory: str) -> Iterator[ElfImage]:
        """The .dwo files that ``name`` may stand for, the likeliest first.  Which one it is, the unit's id tells."""

    def supplementary(self) -> ElfImage | None:
        """The file with what several programs share (dwz), by .gnu_debugaltlink; its build ID has been checked."""


class NoOtherFiles:
    """There are none."""

    def package(self) -> ElfImage | None:
        return None

    def split_files(self, name: str, compilation_directory: str) -> Iterator[ElfImage]:
        return iter(())

    def supplementary(self) -> ElfImage | None:
        return None
