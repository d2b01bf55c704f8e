"""jitdump files."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import pytest

from collectors.ingest.jit_dump import dump_paths, parse_jit_dump
from collectors.perf_data.side_band import MmapRecord, SideBand


def header(pid: int = 7, magic: int = 0x4A695444, version: int = 1, size: int = 40) -> bytes:
    return struct.pack("<IIIIIIQQ", magic, version, size, 62, 0, pid, 0, 0).ljust(size, b"\0")


def record(kind: int, body: bytes) -> bytes:
    return struct.pack("<IIQ", kind, 16 + len(body), 5) + body


def load(address: int, size: int, number: int, name: str) -> bytes:
    return record(0, struct.pack("<IIQQQQ", 7, 7, address, address, size, number) + name.encode() + b"\0" + bytes(size))


def entries(data: bytes) -> list[tuple[int, int, str]]:
    found = parse_jit_dump(io.BytesIO(data), 7)
    return list(zip(found.start.tolist(), found.size.tolist(), found.names, strict=True))


def test_loads_moves_and_other_records() -> None:
    move = record(1, struct.pack("<IIQQQQQ", 7, 7, 0x5000, 0x1000, 0x5000, 16, 1))
    data = (
        header(size=48)
        + load(0x1000, 16, 1, "f(int)")
        + record(2, bytes(40))
        + load(0x2000, 8, 2, "g h")
        + move
        + record(3, b"")
    )
    assert entries(data) == [(0x1000, 16, "f(int)"), (0x2000, 8, "g h"), (0x5000, 16, "f(int)")]


@pytest.mark.parametrize("end", [load(0x3000, 8, 3, "cut")[:30], struct.pack("<IIQ", 0, 4, 0) * 9, b"\xff" * 100])
def test_what_follows_a_damaged_record_is_left_out(end: bytes) -> None:
    assert entries(header() + load(0x1000, 16, 1, "f") + end) == [(0x1000, 16, "f")]


@pytest.mark.parametrize(
    "start", [header(pid=8), header(magic=0x4454694A), header(version=2), header(size=40)[:20], b"", bytes(40)]
)
def test_files_that_cannot_be_used_are_empty(start: bytes) -> None:
    assert entries(start + load(0x1000, 16, 1, "f")) == []


def test_the_file_is_found_by_its_mapping() -> None:
    def mapping(pid: int, path: str) -> MmapRecord:
        return MmapRecord(1, 1, pid, 0x1000, 4096, 0, path, b"", False)

    found = SideBand(mmaps=[mapping(7, "/x/jit-7.dump"), mapping(8, "/x/prog"), mapping(9, "/root/.debug/jit/a/jit-9.dump")])
    assert dump_paths(found) == {7: "/x/jit-7.dump", 9: "/root/.debug/jit/a/jit-9.dump"}


def test_the_dump_of_a_julia_program(corpus: Path) -> None:
    """The names and their order as the file holds them; the process and the first code as its bytes show them."""
    path = corpus / "DataDog+ddprof/test/data/jit-simple-julia.dump"
    with path.open("rb") as stream:
        found = parse_jit_dump(stream, 0x30CEB5)
    assert found.names == (
        "julia_include_0", "jfptr_include_1", "japi1_noinline_2", "julia_getindex_3", "jfptr_getindex_4", "japi1___FILE___5",
        "julia_time_6", "jfptr_time_7", "julia_a_13", "jfptr_a_14", "julia_b_11", "jfptr_b_12", "japi1_top-level scope_8",
    )  # fmt: skip
    assert (int(found.start[0]), int(found.size[0])) == (0x7BEA23B00000, 0x49)
