"""Which builds of files a recording is of: what perf wrote of it, and what was known otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from collectors.ingest.dso_table import KERNEL_BUILD_ID_PATHS, file_kind
from collectors.perf_data.features import BuildIdEntry
from collectors.perf_data.side_band import MmapRecord, SideBand
from profiler.model.dso import DsoKind
from profiler.model.mapped_builds import MappedBuilds
from profiler.model.run import ProgramFacts


def known_build_ids(header: Sequence[BuildIdEntry], program: ProgramFacts, mapped: MappedBuilds | None) -> list[BuildIdEntry]:
    """By path.  ``header``: what perf wrote, which reads build IDs when the program has ended: by then its file may be gone, or
    be another build.  Where processes may see other files than perf (``mapped``), paths tell nothing of user space."""
    if mapped is not None:
        return [entry for entry in header if entry.is_kernel or entry.path in KERNEL_BUILD_ID_PATHS]
    is_known = bool(program.path and program.build_id)
    return [*([BuildIdEntry(program.path, bytes.fromhex(program.build_id), False)] if is_known else ()), *header]


def with_mapped_builds(side_band: SideBand, mapped: MappedBuilds | None) -> SideBand:
    """perf tells of the mappings that were there when it attached by looking at their paths: for these ``mapped`` has the last
    word.  Build IDs that the kernel wrote stay."""
    if mapped is None:
        return side_band
    return replace(side_band, mmaps=[_with_mapped_build(record, mapped) for record in side_band.mmaps])


def _with_mapped_build(record: MmapRecord, mapped: MappedBuilds) -> MmapRecord:
    if record.is_kernel or record.time_ns or file_kind(record.path) != DsoKind.FILE:
        return record
    return record._replace(build_id=mapped.build_ids.get((record.pid, record.path), b""))
