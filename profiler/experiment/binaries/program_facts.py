"""What is known of a program's file before it runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from profiler.errors import FormatError
from profiler.model.run import ProgramFacts
from symbolize.binary_facts import binary_facts
from symbolize.elf import frame_pointers
from symbolize.elf.image import ElfImage, parse_image

ELF_MAGIC = b"\x7fELF"
Answer = TypeVar("Answer")


def keeps_frame_pointers(path: Path) -> bool:
    """``FormatError`` when it is not an ELF file."""
    return _with_image(path, frame_pointers.keeps_frame_pointers)


def file_state(path: Path) -> tuple[int, int, int]:
    """Size, change time in ns and inode: equal as long as a file is not replaced or rewritten."""
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ino


def program_facts(path: Path) -> ProgramFacts:
    """The facts of an executable as it is now; a script has only path and size."""
    path = path.resolve()
    return facts_of_file(path, str(path))


def facts_of_file(path: Path, name: str) -> ProgramFacts:
    """The facts of an executable that is known as ``name``; what is no ELF file has only name and size."""
    size_bytes = path.stat().st_size

    def facts_of(image: ElfImage) -> ProgramFacts:
        facts = binary_facts(image)
        return ProgramFacts(
            path=name,
            build_id=bytes(image.build_id).hex(),
            size_bytes=size_bytes,
            debug_info=facts.debug_info,
            toolchain=facts.producer,
            allocator=facts.allocator,
            mangling=facts.mangling,
            frame_pointers=facts.keeps_frame_pointers,
        )

    try:
        return _with_image(path, facts_of)
    except FormatError:
        return ProgramFacts(path=name, size_bytes=size_bytes)


def _with_image(path: Path, question: Callable[[ElfImage], Answer]) -> Answer:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FormatError(str(path), error.strerror or "cannot be read") from None
    if not data.startswith(ELF_MAGIC):
        raise FormatError(str(path), "not an ELF file")
    return question(parse_image(data, str(path)))
