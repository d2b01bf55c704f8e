"""What a dynamically linked file asks of the dynamic linker (System V ABI, "Dynamic Section")."""

from __future__ import annotations

import numpy as np

from profiler.model.quick_dataclass import dataclass
from symbolize.elf.image import NO_ADDRESS, ElfImage

_ENTRY = np.dtype([("d_tag", "<i8"), ("d_val", "<u8")])
_DT_NULL, _DT_NEEDED, _DT_STRTAB, _DT_RPATH, _DT_RUNPATH = 0, 1, 5, 15, 29


@dataclass(frozen=True, slots=True)
class DynamicNeeds:
    """What the dynamic section asks for, in file order: ``needed`` (DT_NEEDED), ``rpath``, ``runpath`` (split at colons)."""

    needed: tuple[str, ...] = ()
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()


def dynamic_needs(image: ElfImage) -> DynamicNeeds:
    """The needs of one file; empty when it is static, a debug file, or its dynamic section is damaged."""
    segment = image.dynamic_segment
    if segment is None:
        return DynamicNeeds()
    count = min(segment.file_size, max(0, len(image.data) - segment.file_offset)) // _ENTRY.itemsize
    entries = np.frombuffer(image.data, _ENTRY, count, segment.file_offset) if count else np.zeros(0, _ENTRY)
    end = np.flatnonzero(entries["d_tag"] == _DT_NULL)
    entries = entries[: int(end[0])] if len(end) else entries
    strings = _strings(image, entries["d_val"][entries["d_tag"] == _DT_STRTAB])

    def texts(tag: int) -> tuple[str, ...]:
        offsets = entries["d_val"][entries["d_tag"] == tag].tolist()
        return tuple(_text(strings, offset) for offset in offsets)

    rpath, runpath = (tuple(":".join(found).split(":")) if found else () for found in (texts(_DT_RPATH), texts(_DT_RUNPATH)))
    return DynamicNeeds(texts(_DT_NEEDED), rpath, runpath)


def _strings(image: ElfImage, table_address: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> memoryview:
    """From the string table on to the end of the file."""
    if not len(table_address):
        return memoryview(b"")
    offset = image.file_offsets(table_address[:1].astype(np.uint64))[0]
    return image.data[int(offset) :] if offset != NO_ADDRESS else memoryview(b"")


def _text(strings: memoryview, offset: int) -> str:
    length = 256
    while True:
        piece = bytes(strings[offset : offset + length])
        if b"\0" in piece or offset + length >= len(strings):
            return piece.partition(b"\0")[0].decode("utf-8", "backslashreplace")
        length *= 4
