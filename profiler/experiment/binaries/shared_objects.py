"""Which shared objects an executable loads at its start, found the way the dynamic linker finds them (ld.so(8)).

Only the files are read, nothing is executed of them; objects opened later by dlopen are not seen.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

from profiler.errors import FormatError
from profiler.model.quick_dataclass import dataclass
from symbolize.elf.dynamic_section import DynamicNeeds, dynamic_needs
from symbolize.image_file import open_image

_LDCONFIG = ("ldconfig", "/sbin/ldconfig", "/usr/sbin/ldconfig")
_DEFAULT_DIRECTORIES = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")


def needs_of_file(path: Path) -> DynamicNeeds:
    """The needs of one ELF file, empty when it is static.  ``FormatError`` when it is not an ELF file that can be read."""
    image, reason = open_image(path)
    if image is None:
        detail = reason.removeprefix(f"{path}: ") or "no such file"
        raise FormatError(str(path), f"not an ELF file that can be read ({detail})")
    return dynamic_needs(image)


@dataclass(frozen=True, slots=True)
class SharedObject:
    """``path`` is None when the linker would not find it either."""

    name: str
    path: Path | None


class SharedObjects:
    """Looks shared objects up; ``environment`` for LD_LIBRARY_PATH."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._library_path = tuple(part for part in environment.get("LD_LIBRARY_PATH", "").split(":") if part)

    @cached_property
    def _cache(self) -> Mapping[str, Path]:
        for program in _LDCONFIG:
            try:
                answer = subprocess.run([program, "-p"], capture_output=True, check=False, stdin=subprocess.DEVNULL)
            except OSError:
                continue
            if answer.returncode == 0:
                return linker_cache(answer.stdout.decode("utf-8", "surrogateescape"))
        return {}

    def closure(self, executable: Path) -> Iterator[SharedObject]:
        """Every object that the executable needs, directly or not, breadth first, each once; the executable not included."""
        seen: set[str] = set()
        waiting = [(executable, needs_of_file(executable))]
        while waiting:
            owner, needs = waiting.pop(0)
            for name in needs.needed:
                if name in seen:
                    continue
                seen.add(name)
                path = self._find(name, owner, needs)
                yield SharedObject(name, path)
                if path is not None:
                    waiting.append((path, needs_of_file(path)))

    def _find(self, name: str, owner: Path, needs: DynamicNeeds) -> Path | None:
        if "/" in name:
            return Path(name) if Path(name).is_file() else None
        origin = str(owner.resolve().parent)
        own = needs.runpath or needs.rpath
        listed = [directory.replace("${ORIGIN}", origin).replace("$ORIGIN", origin) for directory in own if directory]
        before = [*self._library_path, *listed] if needs.runpath else [*listed, *self._library_path]
        for directory in before:
            if (candidate := Path(directory, name)).is_file():
                return candidate
        if name in self._cache:
            return self._cache[name]
        return next((path for directory in _DEFAULT_DIRECTORIES if (path := Path(directory, name)).is_file()), None)


def linker_cache(listing: str) -> Mapping[str, Path]:
    """Names to paths from `ldconfig -p`, 64-bit x86 or ARM entries only; the first of a name wins, as in the linker."""
    found: dict[str, Path] = {}
    for line in listing.splitlines():
        description, arrow, path = line.strip().partition(" => ")
        name, _, kind = description.partition(" ")
        if arrow and ("x86-64" in kind or "AArch64" in kind):
            found.setdefault(name, Path(path))
    return found
