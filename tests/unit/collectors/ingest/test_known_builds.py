"""Which build a mapping is of, where perf's own look at paths is not to be believed."""

from __future__ import annotations

from collectors.ingest.known_builds import known_build_ids, with_mapped_builds
from collectors.perf_data.features import BuildIdEntry
from collectors.perf_data.side_band import MmapRecord, SideBand
from profiler.model.dso import UNREAD_BUILD
from profiler.model.mapped_builds import MappedBuilds
from profiler.model.run import ProgramFacts

HOSTS, ITS_OWN, LATER = b"\1" * 20, b"\2" * 20, b"\3" * 20
LIBRARY = "/usr/lib/libc.so.6"
MAPPED = MappedBuilds({(7, LIBRARY): ITS_OWN, (7, "/closed"): UNREAD_BUILD}, has_one_root=True)
HEADER = (
    BuildIdEntry("[kernel.kallsyms]", b"\4" * 20, True),
    BuildIdEntry(LIBRARY, HOSTS, False),
)


def mapping(pid: int, path: str, build_id: bytes, time_ns: int = 0) -> MmapRecord:
    return MmapRecord(time_ns, 0, pid, 0x1000, 0x1000, 0, path, build_id, pid == -1)


def test_what_was_mapped_when_perf_attached_is_known_better() -> None:
    records = [
        mapping(7, LIBRARY, HOSTS),
        mapping(7, "/closed", HOSTS),
        mapping(8, LIBRARY, HOSTS),
        mapping(7, LIBRARY, LATER, time_ns=5),
        mapping(7, "[vdso]", b"v"),
        mapping(-1, "[kernel.kallsyms]_text", b"k"),
    ]
    found = with_mapped_builds(SideBand(mmaps=records), MAPPED)
    assert [record.build_id for record in found.mmaps] == [ITS_OWN, UNREAD_BUILD, b"", LATER, b"v", b"k"]
    assert with_mapped_builds(SideBand(mmaps=records), None).mmaps == records


def test_the_header_tells_of_the_kernel_only() -> None:
    program = ProgramFacts(path="/app/server", build_id="0505")
    assert known_build_ids(HEADER, program, MAPPED) == [HEADER[0]]
    assert known_build_ids(HEADER, program, None) == [BuildIdEntry("/app/server", b"\5\5", False), *HEADER]
