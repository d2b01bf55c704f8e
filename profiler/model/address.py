"""The three kinds of address.  A bare ``int`` address never crosses a module.

* ``RuntimeAddress``: in the profiled process (what perf samples).
* ``FileOffset``: byte in the mapped file; ``runtime - mapping.start + mapping.file_offset``.
* ``LinkAddress``: what ``nm`` and ``addr2line`` use; through the PT_LOAD segment that contains the file offset.

In simple binaries the last two coincide, so code that confuses them passes easy tests.
"""

from __future__ import annotations

from typing import NewType

RuntimeAddress = NewType("RuntimeAddress", int)
FileOffset = NewType("FileOffset", int)
LinkAddress = NewType("LinkAddress", int)
