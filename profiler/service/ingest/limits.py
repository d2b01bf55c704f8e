"""What agents may send, and how long it is kept when it is not finished."""

from __future__ import annotations

from dataclasses import field

from profiler.codec.container import DecodeLimits
from profiler.model.quick_dataclass import dataclass

_MIB, _GIB, _DAY_NS = 1 << 20, 1 << 30, 86_400 * 10**9


@dataclass(frozen=True, slots=True)
class IngestLimits:
    """``capture_bytes``, ``debug_file_bytes``: the largest upload of each kind, as it is sent.  ``capture``: when it is
    decoded.  ``elf_bytes``: the largest ELF file, decompressed, its own compressed sections included; ``elf_ratio``: by how
    much it may have been compressed.

    ``agent_bytes``, ``agent_uploads``, ``total_bytes``: of unfinished uploads of one agent, and of all.  ``free_bytes``: what
    is left free of the disk.  ``unfinished_ns``: an unfinished upload that nothing was added to for so long is removed;
    ``finished_ns``: that one was accepted or refused is remembered for so long.  ``wrong_contents``: how often the bytes of an
    upload may turn out not to be those that were offered before it is refused.
    """

    capture_bytes: int = 256 * _MIB
    debug_file_bytes: int = _GIB
    capture: DecodeLimits = field(default=DecodeLimits(head_bytes=8 * _MIB, table_bytes=512 * _MIB, named_rows=500_000))
    elf_bytes: int = 4 * _GIB
    elf_ratio: int = 256
    agent_bytes: int = 4 * _GIB
    agent_uploads: int = 1000
    total_bytes: int = 32 * _GIB
    free_bytes: int = 64 * _MIB
    unfinished_ns: int = 7 * _DAY_NS
    finished_ns: int = 90 * _DAY_NS
    wrong_contents: int = 3
