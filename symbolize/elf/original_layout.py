"""Where the segments of a program lay in its file, told from its debug file.

``objcopy --only-keep-debug`` keeps addresses and sizes in memory of the segments, but not their place in the program's file.
Linkers put them one behind the other, each at the first offset that equals its address modulo the alignment.  That is so as
long as nothing before it was moved or takes less room in the file than in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from symbolize.elf.layout import Segment


def with_original_offsets(segments: Sequence[Segment]) -> tuple[Segment, ...]:
    """``segments`` (PT_LOAD, in file order) with file offsets and sizes of the program, where they are those of a debug file
    without code: in a program, code that is not writable has all of its bytes in the file.  Segments behind the first writable
    one stay without bytes."""
    code = [segment for segment in segments if segment.is_executable and not segment.is_writable]
    if all(segment.file_size >= segment.memory_size for segment in code):
        return tuple(segments)
    found: list[Segment] = []
    end = 0
    is_known = True
    for segment in segments:
        is_known = is_known and not segment.is_writable and segment.alignment > 0
        if not is_known:
            found.append(replace(segment, file_size=0))
            continue
        offset = end + (segment.link_address - end) % segment.alignment
        found.append(replace(segment, file_offset=offset, file_size=segment.memory_size))
        end = offset + segment.memory_size
    return tuple(found)
