"""The tables of one ingestion: what is known before the first sample, and what the samples fill."""

from __future__ import annotations

from collections.abc import Callable

from collectors.ingest.address_spaces import AddressSpaces, MappingTable, build_address_spaces
from collectors.ingest.dso_table import DsoTable
from collectors.ingest.places import Places
from collectors.ingest.quality_counts import IngestCounts
from collectors.ingest.stack_builder import StackBuilder
from collectors.ingest.thread_names import StringTable, ThreadNumbers
from collectors.perf_data.features import BuildIdEntry
from collectors.perf_data.reader import Recording
from collectors.perf_data.side_band import SideBand
from profiler.model.dso import Dso
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import ProgramFacts
from symbolize.elf.image import ElfImage
from symbolize.unwind.unwinder import RuleStore, Unwinder


@dataclass(frozen=True, slots=True)
class IngestTables:
    """``unwinder`` knows the binaries by their row of ``dsos``.  ``is_kernel_high``: the upper half of addresses is the
    kernel's."""

    dsos: DsoTable
    spaces: AddressSpaces
    mappings: MappingTable
    unwinder: Unwinder
    is_kernel_high: bool
    places: Places
    stacks: StackBuilder
    threads: ThreadNumbers
    strings: StringTable
    counts: IngestCounts


def ingest_tables(
    recording: Recording,
    side_band: SideBand,
    image: Callable[[Dso], ElfImage | None],
    program: ProgramFacts,
    unwind_rules: RuleStore | None = None,
) -> IngestTables:
    """Tables for a recording; ``image`` finds the binary of a DSO.  ``program``: what was known of the executable before.
    ``unwind_rules``: those of earlier recordings."""
    dsos = DsoTable([*_build_ids_known_before(program), *recording.features.build_ids])
    spaces = build_address_spaces(side_band, dsos)

    def image_of(row: int) -> ElfImage | None:
        return image(dsos.rows[row])

    return IngestTables(
        dsos=dsos,
        spaces=spaces,
        mappings=MappingTable(spaces, dsos),
        unwinder=Unwinder(image_of, unwind_rules),
        is_kernel_high=is_kernel_high(recording.features.arch, side_band),
        places=Places(),
        stacks=StackBuilder(),
        threads=ThreadNumbers(),
        strings=StringTable(),
        counts=IngestCounts(),
    )


def _build_ids_known_before(program: ProgramFacts) -> list[BuildIdEntry]:
    """perf reads the build IDs of its header when the program has ended: by then its file may be gone, or be another build."""
    return [BuildIdEntry(program.path, bytes.fromhex(program.build_id), False)] if program.path and program.build_id else []


_ARCHITECTURES_32_BIT = ("i386", "i486", "i586", "i686", "armv", "mips", "ppc")


def is_kernel_high(architecture: str, side_band: SideBand) -> bool:
    """Whether the upper half of 64-bit addresses is the kernel's.  Where no architecture was recorded (pipes of old perfs)
    the kernel's own mappings tell."""
    if architecture:
        return not is_32_bit(architecture)
    starts = [record.start for record in side_band.mmaps if record.is_kernel and record.start]
    return not starts or max(starts) >= 1 << 63


def is_32_bit(architecture: str) -> bool:
    """Whether kernel addresses lie in the lower half of 64 bits."""
    return architecture.startswith(_ARCHITECTURES_32_BIT) and "64" not in architecture
