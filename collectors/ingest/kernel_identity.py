"""Which kernel was recorded: what its symbols have to be looked up by."""

from __future__ import annotations

from collectors.ingest.dso_table import KERNEL_BUILD_ID_PATHS, is_kernel_text
from collectors.perf_data.features import Features
from collectors.perf_data.side_band import SideBand
from profiler.model.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class KernelIdentity:
    """``build_id`` empty, ``release`` "" and ``text_address`` (of ``_text``) 0 when not recorded."""

    build_id: bytes
    release: str
    text_address: int


def kernel_identity(features: Features, side_band: SideBand) -> KernelIdentity:
    """From the build-ID table, else the kernel's mapping record; its file offset is the address of its first symbol."""
    build_id = next((entry.build_id for entry in features.build_ids if entry.path in KERNEL_BUILD_ID_PATHS), b"")
    mappings = [record for record in side_band.mmaps if record.is_kernel and is_kernel_text(record.path)]
    if not build_id:
        build_id = next((record.build_id for record in mappings if record.build_id), b"")
    text = next((record.file_offset for record in mappings if record.path.endswith("]_text")), 0)
    return KernelIdentity(build_id, features.osrelease, text)
