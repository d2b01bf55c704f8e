"""Opens ELF files."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

from profiler.errors import FormatError
from symbolize.elf.image import ElfImage, parse_image

_MAPPED_FROM_BYTES = 1 << 18  # smaller files are read: a mapping would hold a descriptor for each


def open_image(path: Path) -> tuple[ElfImage | None, str]:
    """(image, "") or (None, reason); the reason is empty when there simply is no such file."""
    try:
        if not path.is_file():
            return None, ""
        with path.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            if size >= _MAPPED_FROM_BYTES:
                return parse_image(mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ), str(path)), ""
            return parse_image(stream.read(size), str(path)), ""
    except OSError as error:
        return None, f"{path}: {error.strerror}"
    except ValueError as error:  # a path with a zero byte
        return None, f"{path!s}: {error}"
    except FormatError as error:
        return None, str(error)


def is_same_file(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except (OSError, ValueError):
        return False
