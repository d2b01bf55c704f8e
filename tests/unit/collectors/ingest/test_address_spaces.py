"""Which file lay at an address at a time."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from collectors.ingest.address_spaces import MappingTable, build_address_spaces
from collectors.ingest.dso_table import DsoTable
from collectors.perf_data.features import BuildIdEntry
from collectors.perf_data.side_band import CommRecord, ForkRecord, MmapRecord, SideBand
from profiler.model.dso import DsoKind

PAGE = 4096


class Machine:
    """Records in file order, and questions about them."""

    def __init__(self) -> None:
        self.side_band = SideBand()
        self.position = 0

    def mmap(
        self,
        time: int,
        pid: int,
        start: int,
        length: int,
        path: str,
        offset: int = 0,
        build_id: bytes = b"",
        is_kernel: bool = False,
    ) -> None:
        self.position += 8
        record = MmapRecord(time, self.position, pid, start, length, offset, path, build_id, is_kernel)
        self.side_band.mmaps.append(record)

    def fork(self, time: int, pid: int, parent: int, tid: int = 0, is_synthesized: bool = False) -> None:
        self.position += 8
        self.side_band.forks.append(ForkRecord(time, self.position, pid, tid or pid, parent, parent, is_synthesized))

    def comm(self, time: int, pid: int, is_exec: bool) -> None:
        self.position += 8
        self.side_band.comms.append(CommRecord(time, self.position, pid, pid, "name", is_exec))

    def at(self, time: int, pid: int, address: int) -> tuple[str, int] | None:
        dsos = DsoTable(())
        spaces = build_address_spaces(self.side_band, dsos)
        table = MappingTable(spaces, dsos)
        space = np.maximum(spaces.timeline().at(np.array([pid], np.uint64), np.array([time], np.uint64)), 0).astype(np.int64)
        table.enter(space)
        dso, offset = table.resolve(space, np.array([address], np.uint64))
        return None if dso[0] < 0 else (dsos.rows[dso[0]].path, int(offset[0]))


def test_offset_is_that_in_the_file() -> None:
    machine = Machine()
    machine.mmap(0, 7, 0x400000, 0x3000, "/bin/a", offset=0x1000)
    assert machine.at(5, 7, 0x401234) == ("/bin/a", 0x2234)
    assert machine.at(5, 7, 0x402FFF) == ("/bin/a", 0x3FFF)
    assert machine.at(5, 7, 0x403000) is None
    assert machine.at(5, 7, 0x3FFFFF) is None
    assert machine.at(5, 8, 0x401234) is None


def test_a_later_mapping_cuts_the_earlier_one_for_later_samples_only() -> None:
    machine = Machine()
    machine.mmap(0, 7, 0x10000, 0x8000, "/lib/old.so")
    machine.mmap(50, 7, 0x12000, 0x2000, "/lib/new.so", offset=0x5000)
    assert machine.at(49, 7, 0x12345) == ("/lib/old.so", 0x2345)
    assert machine.at(50, 7, 0x12345) == ("/lib/new.so", 0x5345)
    assert machine.at(60, 7, 0x11000) == ("/lib/old.so", 0x1000)
    assert machine.at(60, 7, 0x14000) == ("/lib/old.so", 0x4000)


def test_records_apply_by_time_not_by_position() -> None:
    machine = Machine()
    machine.mmap(50, 7, 0x10000, 0x1000, "/lib/second.so")
    machine.mmap(20, 7, 0x10000, 0x1000, "/lib/first.so")
    assert machine.at(30, 7, 0x10000) == ("/lib/first.so", 0)
    assert machine.at(55, 7, 0x10000) == ("/lib/second.so", 0)


def test_exec_clears_and_a_new_name_alone_does_not() -> None:
    machine = Machine()
    machine.mmap(0, 7, 0x10000, 0x1000, "/bin/sh")
    machine.comm(10, 7, is_exec=False)
    machine.comm(20, 7, is_exec=True)
    machine.mmap(21, 7, 0x20000, 0x1000, "/bin/true")
    assert machine.at(15, 7, 0x10000) == ("/bin/sh", 0)
    assert machine.at(22, 7, 0x10000) is None
    assert machine.at(22, 7, 0x20000) == ("/bin/true", 0)


def test_a_child_has_its_parents_mappings_of_the_moment_of_the_fork() -> None:
    machine = Machine()
    machine.mmap(0, 7, 0x10000, 0x1000, "/bin/a")
    machine.fork(10, 8, 7)
    machine.mmap(20, 7, 0x20000, 0x1000, "/lib/later.so")
    machine.mmap(30, 8, 0x30000, 0x1000, "/lib/own.so")
    machine.fork(40, 9, 8)
    assert machine.at(50, 8, 0x10000) == ("/bin/a", 0)
    assert machine.at(50, 8, 0x20000) is None
    assert machine.at(50, 7, 0x20000) == ("/lib/later.so", 0)
    assert machine.at(50, 9, 0x10000) == ("/bin/a", 0)
    assert machine.at(50, 9, 0x30000) == ("/lib/own.so", 0)
    assert machine.at(50, 7, 0x30000) is None


def test_threads_share_and_synthesized_forks_copy_nothing() -> None:
    machine = Machine()
    machine.mmap(0, 7, 0x10000, 0x1000, "/bin/a")
    machine.fork(5, 7, 7, tid=70)
    machine.fork(0, 8, 7, is_synthesized=True)
    machine.mmap(10, 7, 0x20000, 0x1000, "/lib/b.so")
    assert machine.at(15, 7, 0x20000) == ("/lib/b.so", 0)
    assert machine.at(15, 8, 0x10000) is None


def test_a_number_that_is_used_again_is_a_new_process() -> None:
    machine = Machine()
    machine.mmap(0, 1, 0x90000, 0x1000, "/bin/init")
    machine.mmap(0, 7, 0x10000, 0x1000, "/bin/a")
    machine.fork(50, 7, 1)
    assert machine.at(40, 7, 0x10000) == ("/bin/a", 0)
    assert machine.at(60, 7, 0x10000) is None
    assert machine.at(60, 7, 0x90000) == ("/bin/init", 0)


def test_equal_mappings_of_an_attach_to_many_threads_are_one() -> None:
    machine = Machine()
    for _ in range(4):
        machine.mmap(0, 7, 0x10000, 0x1000, "/bin/a")
        machine.mmap(0, 7, 0x11000, 0x1000, "/lib/b.so")
    spaces = build_address_spaces(machine.side_band, DsoTable(()))
    assert len(spaces.spaces) == 2
    assert len(spaces.spaces[1].extents()) == 2


def test_anonymous_memory_keeps_runtime_addresses() -> None:
    machine = Machine()
    machine.mmap(0, 7, 0x7F0000000000, 0x1000, "//anon", offset=0x123000)
    assert machine.at(1, 7, 0x7F0000000010) == ("//anon", 0x7F0000000010)


def test_modules_and_kernel() -> None:
    machine = Machine()
    machine.mmap(0, -1, 2**64 - 2**31, 2**30, "[kernel.kallsyms]_text", build_id=b"kk", is_kernel=True)
    machine.mmap(0, -1, 2**64 - 2**29, 0x8000, "/lib/modules/6.1/kernel/net/nf-tables.ko.xz", is_kernel=True)
    dsos = DsoTable(())
    spaces = build_address_spaces(machine.side_band, dsos)
    assert dsos.rows[DsoTable.KERNEL].build_id == b"kk"
    ((start, end, row),) = spaces.modules
    assert (start, end, dsos.rows[row].path, dsos.rows[row].kind) == (
        2**64 - 2**29, 2**64 - 2**29 + 0x8000, "[nf_tables]", DsoKind.MODULE,
    )  # fmt: skip


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[str, int, int, int, int]]:
    """(what, pid, parent or first page, pages, name) in time order."""
    event = st.one_of(
        st.tuples(st.just("mmap"), st.integers(1, 3), st.integers(1, 12), st.integers(1, 6), st.integers(0, 2)),
        st.tuples(st.just("fork"), st.integers(1, 3), st.integers(1, 3), st.just(0), st.just(0)),
        st.tuples(st.just("exec"), st.integers(1, 3), st.just(0), st.just(0), st.just(0)),
    )
    return draw(st.lists(event, max_size=25))


@given(histories())
def test_against_a_page_by_page_model(history: list[tuple[str, int, int, int, int]]) -> None:
    machine = Machine()
    pages: dict[int, dict[int, tuple[str, int]]] = {}
    snapshots = []
    for time, (what, pid, second, count, name) in enumerate(history, 1):
        if what == "mmap":
            path = f"/lib/{name}.so"
            machine.mmap(time, pid, second * PAGE, count * PAGE, path, offset=second * PAGE)
            pages.setdefault(pid, {}).update({page: (path, page * PAGE) for page in range(second, second + count)})
        elif what == "fork" and pid != second:
            machine.fork(time, pid, second)
            pages[pid] = dict(pages.get(second, {}))
        elif what == "exec":
            machine.comm(time, pid, is_exec=True)
            pages[pid] = {}
        snapshots.append({pid: dict(table) for pid, table in pages.items()})
    for time, snapshot in enumerate(snapshots, 1):
        for pid, table in snapshot.items():
            for page, expected in table.items():
                assert machine.at(time, pid, page * PAGE) == expected


def test_dso_identity_is_path_and_build_id() -> None:
    dsos = DsoTable([BuildIdEntry("/bin/a", b"header", False), BuildIdEntry("[kernel.kallsyms]", b"kernel", True)])
    plain, deleted, other = dsos.file("/bin/a", b""), dsos.file("/bin/a (deleted)", b""), dsos.file("/bin/a", b"mapping")
    assert plain == deleted
    assert plain != other
    assert [dsos.rows[row].build_id for row in (plain, other, DsoTable.KERNEL)] == [b"header", b"mapping", b"kernel"]
    kinds = {
        path: dsos.rows[dsos.file(path, b"")].kind for path in ("[vdso]", "//anon", "", "[heap]", "/memfd:jit", "/tmp/a b (x)")
    }
    assert kinds == {
        "[vdso]": DsoKind.VDSO,
        "//anon": DsoKind.ANONYMOUS,
        "": DsoKind.ANONYMOUS,
        "[heap]": DsoKind.ANONYMOUS,
        "/memfd:jit": DsoKind.ANONYMOUS,
        "/tmp/a b (x)": DsoKind.FILE,
    }
