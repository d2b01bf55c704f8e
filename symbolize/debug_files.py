"""Finds the files that hold a binary's debug information: its debug file, and the files which that refers to."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from profiler.errors import FormatError
from symbolize.debuginfod import Debuginfod
from symbolize.elf.identity import is_build
from symbolize.elf.image import ElfImage
from symbolize.image_file import is_same_file, open_image
from symbolize.search_paths import SearchPaths


def has_symbols(image: ElfImage) -> bool:
    return image.section_is_stored(".symtab")


class DebugFiles:
    """Searches for separate debug files (GDB manual, "Separate Debug Files")."""

    def __init__(self, search: SearchPaths, servers: Debuginfod) -> None:
        self._search = search
        self._servers = servers

    def by_build_id(self, build_id: bytes) -> ElfImage | None:
        for path in self._search.debug_files(build_id):
            image, _ = open_image(path)
            if image is not None and is_build(image, build_id):
                return image
        return None

    def downloaded(self, build_id: bytes) -> ElfImage | None:
        return self._servers.find(build_id, "debuginfo")

    def of_binary(self, image: ElfImage) -> tuple[ElfImage | None, str]:
        """(debug file of a binary that lacks symbols or debug information, status)."""
        found = self.by_build_id(image.build_id)
        if found is not None:
            return found, ""
        found, refused = self._by_debug_link(image)
        found = found or self._by_path(image) or self.downloaded(image.build_id)
        if found is not None:
            return found, ""
        if has_symbols(image) or image.section_is_stored(".gnu_debugdata"):
            return None, refused
        missing = f"{image.name}: stripped, no debug file for build ID {image.build_id.hex() or 'none'}"
        return None, refused or missing

    def _by_path(self, image: ElfImage) -> ElfImage | None:
        """The file under the binary's own path in the debug trees; only a build ID tells whether it is the right one."""
        below = str(self._search.place(image.name)).lstrip("/")
        for path in (*self._search.in_trees(f"{below}.debug"), *self._search.in_trees(below)) if image.build_id else ():
            found, _ = open_image(path)
            if found is not None and found.build_id == image.build_id and not is_same_file(path, Path(image.name)):
                return found
        return None

    def _by_debug_link(self, image: ElfImage) -> tuple[ElfImage | None, str]:
        """(the file that .gnu_debuglink names: beside the binary, in ``.debug`` below it, in the debug directories; "" or the
        first one that was refused)."""
        link = _debug_link(image)
        if link is None:
            return None, ""
        name, checksum = link
        refused = ""
        for path in self._debug_link_paths(image, name):
            if is_same_file(path, Path(image.name)):
                continue
            found, _ = open_image(path)
            if found is None:
                continue
            if found.build_id and image.build_id and found.build_id != image.build_id:
                refused = refused or f"{path}: build ID {found.build_id.hex()}, the binary's is {image.build_id.hex()}"
            elif zlib.crc32(found.data) != checksum:
                refused = refused or f"{path}: checksum is not the one in {image.name}'s .gnu_debuglink"
            else:
                return found, ""
        return None, refused

    def _debug_link_paths(self, image: ElfImage, name: str) -> Iterator[Path]:
        below = str(self._search.place(image.name).parent).lstrip("/")
        yield from (self._search.beside(image.name, name), self._search.beside(image.name, f".debug/{name}"))
        yield from self._search.in_trees(f"{below}/{name}")
        yield from (extra / name for extra in self._search.extra_directories)


class LinkedFiles:
    """The ``OtherFiles`` of one program.  ``images``: the files of it that are there, debug file first."""

    def __init__(self, images: tuple[ElfImage, ...], search: SearchPaths, servers: Debuginfod) -> None:
        self._images = images
        self._search = search
        self._servers = servers
        self._opened: dict[str, ElfImage | None] = {}

    def package(self) -> ElfImage | None:
        return self._once("package", self._find_package)

    def supplementary(self) -> ElfImage | None:
        return self._once("supplementary", self._find_supplementary)

    def lacks_supplementary(self) -> bool:
        """Whether the debug information refers to a file that is not there."""
        return self._described().section_is_stored(".gnu_debugaltlink") and self.supplementary() is None

    def split_files(self, name: str, compilation_directory: str) -> Iterator[ElfImage]:
        if not name or "\0" in name:
            return
        for path in self._split_paths(name, compilation_directory):
            image, _ = open_image(path)
            if image is not None:
                yield image

    def _once(self, what: str, find: Callable[[], ElfImage | None]) -> ElfImage | None:
        if what not in self._opened:
            self._opened[what] = find()
        return self._opened[what]

    def _described(self) -> ElfImage:
        return next((image for image in self._images if image.has_debug_info()), self._images[0])

    def _directories(self) -> list[Path]:
        found = [self._search.beside(image.name, ".") for image in self._images]
        return list(dict.fromkeys([*found, *self._search.extra_directories]))

    def _split_paths(self, name: str, compilation_directory: str) -> Iterator[Path]:
        """The recorded place; for files that were moved, the same path below the directories or its last part in them."""
        recorded = Path(compilation_directory) / name
        if recorded.is_absolute():
            yield self._search.on_system(str(recorded))
        for directory in self._directories():
            if not Path(name).is_absolute():
                yield directory / name
            yield directory / Path(name).name

    def _find_package(self) -> ElfImage | None:
        for path in self._package_paths():
            image, _ = open_image(path)
            if image is not None and image.section_is_stored(".debug_cu_index"):
                return image
        return None

    def _package_paths(self) -> Iterator[Path]:
        names = [Path(image.name).name for image in self._images]
        names += [name.removesuffix(".debug") for name in names if name.endswith(".debug")]
        for directory in self._directories():
            yield from (directory / f"{name}.dwp" for name in names)
        yield from self._search.packages(self._images[0].build_id)

    def _find_supplementary(self) -> ElfImage | None:
        image = self._described()
        link = _supplementary_link(image)
        if link is None:
            return None
        name, build_id = link
        for path in self._supplementary_paths(image, name, build_id):
            found, _ = open_image(path)
            if found is not None and found.build_id == build_id:
                return found
        return self._servers.find(build_id, "debuginfo")

    def _supplementary_paths(self, image: ElfImage, name: str, build_id: bytes) -> Iterator[Path]:
        """Relative names count from the file with the link, or from its place in the debug tree of another machine."""
        if Path(name).is_absolute():
            yield self._search.on_system(name)
        else:
            yield self._search.beside(image.name, name)
        base = Path(name).name
        for directory in self._directories():
            yield from (directory / base, directory / ".dwz" / base)
        yield from self._search.debug_files(build_id)
        yield from self._search.in_trees(f".dwz/{base}")
        yield from self._search.in_trees(f".dwz/x86_64-linux-gnu/{base}")


def _debug_link(image: ElfImage) -> tuple[str, int] | None:
    """(file name, CRC-32 of that file) from .gnu_debuglink."""
    data = _contents(image, ".gnu_debuglink")
    if len(data) < 8:
        return None
    name = data[:-4].partition(b"\0")[0].decode("utf-8", "surrogateescape")
    if not name or "/" in name:
        return None
    return name, int.from_bytes(data[-4:], "little")


def _supplementary_link(image: ElfImage) -> tuple[str, bytes] | None:
    """(file name, its build ID) from .gnu_debugaltlink."""
    name, _, build_id = _contents(image, ".gnu_debugaltlink").partition(b"\0")
    return (name.decode("utf-8", "surrogateescape"), build_id) if name and build_id else None


def _contents(image: ElfImage, section: str) -> bytes:
    try:
        return bytes(image.section_bytes(section) or b"")
    except FormatError:
        return b""
