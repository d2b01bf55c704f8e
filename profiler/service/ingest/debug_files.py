"""Debug files of agents: unpacked, checked, and kept when they are better than what is there."""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from profiler.errors import FormatError
from profiler.model.quick_dataclass import dataclass
from profiler.service.ingest.limits import IngestLimits
from profiler.service.ingest.upload_error import NotAcceptable
from profiler.store.debug_tree import debug_directory, debug_file
from profiler.store.durable_directory import make_directory, sync_directory
from profiler.store.scratch import store_errors
from symbolize.elf.identity import is_build
from symbolize.elf.layout import PT_NOTE, SHF_COMPRESSED, SHT_NOTE, read_layout
from symbolize.image_file import open_image

if TYPE_CHECKING:
    from symbolize.elf.image import ElfImage

_CHUNK_BYTES = 1 << 20
_WINDOW_BYTES = 128 << 20  # what zstd --ultra -22 and --long=27 use
_NOTE_BYTES = 1 << 16  # a build ID's note has 36
_SECTION_COUNT = slice(0x3C, 0x3E)


class SymbolRank(IntEnum):
    """What a file tells of the functions in a binary, the better the higher."""

    NOTHING = 0
    DYNAMIC_SYMBOLS = 1
    SYMBOLS = 2
    DWARF = 3


def rank_of(image: ElfImage) -> SymbolRank:
    if image.has_debug_info():
        return SymbolRank.DWARF
    if image.section_is_stored(".symtab") or image.section_is_stored(".gnu_debugdata"):
        return SymbolRank.SYMBOLS
    return SymbolRank.DYNAMIC_SYMBOLS if image.section_is_stored(".dynsym") else SymbolRank.NOTHING


def unpack(source: BinaryIO, target: Path, packed_bytes: int, limits: IngestLimits) -> None:
    """Decompresses zstd frames of ``packed_bytes`` into a new file; memory stays bounded, and no more is written than may be.

    ``NotAcceptable``: not zstd, cut off, or too large.  ``OSError`` of the target.
    """
    import zstandard

    limit = min(limits.elf_bytes, limits.elf_ratio * packed_bytes)
    size = 0
    unpacker = zstandard.ZstdDecompressor(max_window_size=_WINDOW_BYTES)
    with target.open("xb") as stream:
        try:
            for chunk in unpacker.read_to_iter(source, read_size=_CHUNK_BYTES, write_size=_CHUNK_BYTES):
                size += len(chunk)
                if size > limit:
                    raise NotAcceptable(f"more than {limit} bytes when decompressed")
                stream.write(chunk)
        except zstandard.ZstdError as error:
            raise NotAcceptable(f"cannot be decompressed ({error})") from None


def check_elf(path: Path, build_id: str, limits: IngestLimits) -> SymbolRank:
    """``NotAcceptable`` unless the file is an ELF file of this build ID that has names."""
    _check_headers(path, limits)
    image, reason = open_image(path)
    if image is None:
        raise NotAcceptable(reason.replace(str(path), "debug file") or "not an ELF file")
    if not is_build(image, bytes.fromhex(build_id)):
        raise NotAcceptable(f"build ID {image.build_id.hex() or 'none'}, not {build_id}")
    rank = rank_of(image)
    if rank is SymbolRank.NOTHING:
        raise NotAcceptable("neither DWARF nor a symbol table in it")
    return rank


def _check_headers(path: Path, limits: IngestLimits) -> None:
    """What reading the file takes grows with its headers, and what reading its sections takes with what they claim."""
    with path.open("rb") as stream:
        head = stream.read(64)
        if len(head) < 64 or not head.startswith(b"\x7fELF"):
            raise NotAcceptable("not an ELF file")
        if head[_SECTION_COUNT] == b"\0\0":
            raise NotAcceptable("no sections, or more than 65,279 of them")
        try:
            notes, unpacked = _claims(memoryview(mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ)))
        except FormatError as error:
            raise NotAcceptable(f"debug file: {error.reason}") from None
    if notes > _NOTE_BYTES:
        raise NotAcceptable(f"{notes} bytes of notes")
    if unpacked > limits.elf_bytes:
        raise NotAcceptable(f"compressed sections of {unpacked} bytes when decompressed")


def _claims(data: memoryview) -> tuple[int, int]:
    """(bytes of all notes, decompressed bytes of all compressed sections)."""
    layout = read_layout(data, "debug file")
    notes = sum(section.size for section in layout.sections if section.type == SHT_NOTE)
    notes += sum(segment.file_size for kind, segment in layout.segments if kind == PT_NOTE)
    packed = [section for section in layout.sections if section.flags & SHF_COMPRESSED]
    return notes, sum(int.from_bytes(data[section.file_offset + 8 : section.file_offset + 16], "little") for section in packed)


@dataclass(frozen=True, slots=True)
class DebugTree:
    """The debug files below the store."""

    store_directory: Path

    def rank(self, build_id: str) -> SymbolRank:
        """Of what is kept for a build ID; NOTHING when there is no file, or none that can be read."""
        image, _ = open_image(debug_file(self.store_directory, build_id))
        return rank_of(image) if image is not None and is_build(image, bytes.fromhex(build_id)) else SymbolRank.NOTHING

    def place(self, source: Path, build_id: str, rank: SymbolRank) -> bool:
        """Moves the file in, all at once and durably, unless what is there is as good: then False.  ``StoreError``."""
        target = debug_file(self.store_directory, build_id)
        with store_errors(target):
            make_directory(target.parent)
            with self._alone():
                if self.rank(build_id) >= rank:
                    return False
                _sync(source)
                os.replace(source, target)
                sync_directory(target.parent)
        return True

    def remove(self, build_id: str) -> None:
        target = debug_file(self.store_directory, build_id)
        with store_errors(target), self._alone():
            target.unlink(missing_ok=True)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One at a time compares and replaces, whichever process it is of."""
        descriptor = os.open(debug_directory(self.store_directory), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
