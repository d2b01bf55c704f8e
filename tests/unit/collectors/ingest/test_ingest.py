"""Small recordings written by hand, ingested whole."""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.ingest import callchains
from collectors.ingest.ingest import IngestEnvironment, ingest
from collectors.ingest.ingest_tables import is_32_bit
from collectors.perf_data.reader import open_recording
from profiler.errors import FormatError
from profiler.model.arrays import UInt64Column
from profiler.model.capture import Capture
from profiler.model.dso import DsoKind
from profiler.model.frame_table import CpuMode
from profiler.model.run import CaptureInfo, HostFacts, ProgramFacts, RunIdentity, RunMode
from profiler.model.sample_table import StackState
from support import perf_data_writer as writer
from support.no_images import NoImages
from support.perf_data_writer import EventSpec, RecordingWriter, Sample

KERNEL, USER = writer.KERNEL_MARKER, writer.USER_MARKER
KERNEL_CODE = 0xFFFFFFFF81000000
MODULE_CODE = 0xFFFFFFFFC0000000


@dataclass
class NamedKernel:
    """Functions of 0x100 bytes, named after their address."""

    def names(self, addresses: UInt64Column) -> list[str]:
        return [f"k_{address >> 8 & 0xFFFF:x}" for address in addresses.tolist()]

    def modules(self, addresses: UInt64Column) -> list[str]:
        return ["ext4" if address >= MODULE_CODE + 0x10000 else "" for address in addresses.tolist()]


def info(mode: RunMode = RunMode.IMPORTED) -> CaptureInfo:
    return CaptureInfo(RunIdentity("file", "test", 0, mode))


def ingested(content: RecordingWriter, mode: RunMode = RunMode.IMPORTED, kernel: NamedKernel | None = None) -> Capture:
    recording = open_recording(io.BytesIO(content.build()), "test.data")
    return ingest(recording, info(mode), IngestEnvironment(NoImages(), kernel))


def stack_of(capture: Capture, sample: int) -> list[tuple[str, int, bool]]:
    """(DSO name, offset, is return address), innermost first."""
    frames = capture.frames
    return [
        (capture.dsos[frames.dso[row]].name, int(frames.offset[row]), bool(frames.is_return_address[row]))
        for row in capture.stacks.frames_leaf_first(int(capture.samples.stack[sample]))
    ]


def program(*events: EventSpec) -> RecordingWriter:
    content = RecordingWriter(events or (EventSpec(),))
    content.comm(10, 10, b"prog", time=1)
    content.mmap2(10, 0x400000, 0x10000, 0x2000, b"/bin/prog", time=1)
    return content


def test_kernel_and_user_part_with_their_exact_frames() -> None:
    content = program()
    content.mmap(-1, KERNEL_CODE, 0x1000000, KERNEL_CODE, b"[kernel.kallsyms]_text", misc=1)
    chain = (KERNEL, KERNEL_CODE + 0x10, KERNEL_CODE + 0x120, USER, 0x400100, 0x400200)
    content.sample(Sample(ip=chain[1], time=5, chain=chain, misc=1))
    capture = ingested(content, kernel=NamedKernel())
    assert stack_of(capture, 0) == [
        ("[kernel]", KERNEL_CODE + 0x10, False),
        ("[kernel]", KERNEL_CODE + 0x120, True),
        ("prog", 0x2100, False),
        ("prog", 0x2200, True),
    ]
    modes = {int(o): int(m) for o, m in zip(capture.frames.offset, capture.frames.mode, strict=True)}
    assert modes[0x2100] == CpuMode.USER
    assert modes[KERNEL_CODE + 0x10] == CpuMode.KERNEL
    symbols = {int(o): int(s) for o, s in zip(capture.frames.offset, capture.frames.symbol, strict=True)}
    assert capture.strings[symbols[KERNEL_CODE + 0x10]] == "k_0"
    assert capture.strings[symbols[KERNEL_CODE + 0x120]] == "k_1"
    assert symbols[0x2100] == -1


def test_modules_by_mapping_and_by_symbol_table() -> None:
    content = program()
    content.mmap(-1, MODULE_CODE, 0x1000, 0, b"/lib/modules/6.1/kernel/drivers/net/virtio-net.ko", misc=1)
    chain = (KERNEL, MODULE_CODE + 0x10, MODULE_CODE + 0x20000, KERNEL_CODE)
    content.sample(Sample(ip=chain[1], chain=chain, misc=1))
    capture = ingested(content, kernel=NamedKernel())
    assert [name for name, _, _ in stack_of(capture, 0)] == ["[virtio_net]", "[ext4]", "[kernel]"]
    assert {dso.kind for dso in capture.dsos} == {DsoKind.KERNEL, DsoKind.MODULE}


def test_without_kernel_symbols_addresses_stay() -> None:
    content = program()
    content.sample(Sample(ip=KERNEL_CODE, chain=(KERNEL, KERNEL_CODE), misc=1))
    capture = ingested(content)
    assert capture.frames.symbol.tolist() == [-1]
    assert stack_of(capture, 0) == [("[kernel]", KERNEL_CODE, False)]


def test_samples_without_callchain_become_one_frame() -> None:
    content = program(EventSpec(sample_type=writer.IDENTIFIER | writer.IP | writer.TID | writer.TIME | writer.PERIOD))
    content.sample(Sample(ip=0x400010, time=2))
    content.sample(Sample(ip=KERNEL_CODE, time=3, misc=1))
    content.sample(Sample(ip=0x1234, time=4, misc=4))
    content.sample(Sample(ip=0, time=5, misc=0))
    capture = ingested(content)
    assert [stack_of(capture, row) for row in range(4)] == [
        [("prog", 0x2010, False)],
        [("[kernel]", KERNEL_CODE, False)],
        [("[guest]", 0x1234, False)],
        [("[unknown]", 0, False)],
    ]
    assert capture.frames.mode.tolist().count(CpuMode.GUEST) == 1
    assert capture.quality.no_user_stack == 4
    assert "recorded without call stacks; use --call-graph" in capture.quality.notes


def test_a_user_address_in_a_kernel_sample_is_unknown_and_stays_as_recorded() -> None:
    content = program(EventSpec(sample_type=writer.IDENTIFIER | writer.IP | writer.TID | writer.TIME | writer.PERIOD))
    content.sample(Sample(ip=0x7F1671BCF6C1, time=2, misc=1))
    assert stack_of(ingested(content), 0) == [("[unknown]", 0x7F1671BCF6C1, False)]


def test_kernel_addresses_of_a_32_bit_machine_that_does_not_say_so() -> None:
    content = program(EventSpec(sample_type=writer.IDENTIFIER | writer.IP | writer.TID | writer.TIME | writer.PERIOD))
    content.mmap(-1, 0x80200000, 0x7FDFFFFF, 0x80200000, b"[kernel.kallsyms]_text", misc=1)
    content.sample(Sample(ip=0x810A44F3, time=2, misc=1))
    assert stack_of(ingested(content), 0) == [("[kernel]", 0x810A44F3, False)]


def test_mappings_of_kernels_that_wrote_no_protection() -> None:
    content = RecordingWriter()
    content.mmap2_without_protection(10, 0x400000, 0x1000, 0x2000, b"/usr/lib/long/name.so")
    content.mmap2_without_protection(10, 0x500000, 0x1000, 0, b"[vdso]")
    content.sample(Sample(chain=(USER, 0x400010, 0x500020)))
    capture = ingested(content)
    assert stack_of(capture, 0) == [("name.so", 0x2010, False), ("[vdso]", 0x20, True)]
    assert "/usr/lib/long/name.so" in {dso.path for dso in capture.dsos}


def test_addresses_of_arm64_have_48_bits() -> None:
    content = RecordingWriter()
    kernel, library = 0xFFFF000008081000, 0xFFFF9A000000
    content.mmap2(10, library, 0x10000, 0x3000, b"/lib/libc.so")
    content.mmap2(10, library + 0x20000, 0x1000, 0, b"//anon")
    chain = (KERNEL, kernel, USER, library + 0x10, library + 0x20010)
    content.sample(Sample(ip=kernel, chain=chain, misc=1))
    assert stack_of(ingested(content), 0) == [
        ("[kernel]", kernel, False),
        ("libc.so", 0x3010, False),
        ("[unknown]", library + 0x20010, True),
    ]


BPF = 0xFFFFFFFFC0100000


def test_bpf_programs_have_the_names_that_were_recorded() -> None:
    content = program()
    content.kernel_symbol(BPF, 0x80, b"bpf_prog_1_count")
    content.kernel_symbol(BPF + 0x100, 0x80, b"bpf_trampoline_7", kind=2)
    content.kernel_symbol(BPF, 0x80, b"bpf_prog_1_count", flags=1, time=9)
    chain = (KERNEL, BPF + 0x7F, BPF + 0x80, BPF + 0x110, KERNEL_CODE + 0x120)
    content.sample(Sample(ip=chain[1], chain=chain, misc=1))
    capture = ingested(content, kernel=NamedKernel())
    names = [capture.strings[capture.frames.symbol[row]] for row in capture.stacks.frames_leaf_first(capture.samples.stack[0])]
    # The second address returns behind the program's last byte; it is looked up one byte before.
    assert names == ["bpf_prog_1_count", "bpf_prog_1_count", "bpf_trampoline_7", "k_1"]
    assert stack_of(capture, 0)[0][0] == "[bpf]"


def test_an_address_that_held_two_bpf_programs_has_no_name() -> None:
    content = program()
    content.kernel_symbol(BPF, 0x80, b"bpf_prog_1_count")
    content.kernel_symbol(BPF + 0x40, 0x100, b"bpf_prog_2_drop")
    chain = (KERNEL, BPF + 0x10, BPF + 0x51, BPF + 0x91)
    content.sample(Sample(ip=chain[1], chain=chain, misc=1))
    capture = ingested(content)
    symbols = [capture.frames.symbol[row] for row in capture.stacks.frames_leaf_first(capture.samples.stack[0])]
    assert [capture.strings[row] if row >= 0 else "" for row in symbols] == ["bpf_prog_1_count", "", "bpf_prog_2_drop"]


LBR = EventSpec(sample_type=writer.USUAL | writer.BRANCH_STACK, branch_sample_type=writer.CALL_STACK | writer.HW_INDEX)
CALLS = ((0x400300, 0x400100, 0), (0x400500, 0x400200, 0), (0x400700, 0x400600, 0))


def test_branch_call_stacks_are_the_user_part_of_the_stack() -> None:
    """A call leads from its instruction to a function; the kernel's part comes from the callchain as always."""
    content = program(LBR)
    chain = (KERNEL, KERNEL_CODE + 1, KERNEL_CODE + 2, USER, 0x400110, 0x1234)
    content.sample(Sample(ip=chain[1], time=2, chain=chain, branches=CALLS, misc=1))
    content.sample(Sample(ip=0x400110, time=3, chain=(USER, 0x400110), branches=CALLS[:1]))
    content.sample(Sample(ip=0x400110, time=4, chain=(USER, 0x400110, 0x400510)))
    content.sample(Sample(ip=KERNEL_CODE, time=5, chain=(KERNEL, KERNEL_CODE), branches=CALLS, misc=1))
    capture = ingested(content)
    user = [("prog", 0x2100, False), ("prog", 0x2300, False), ("prog", 0x2500, False), ("prog", 0x2700, False)]
    kernel = [("[kernel]", KERNEL_CODE + 1, False), ("[kernel]", KERNEL_CODE + 2, True)]
    assert stack_of(capture, 0) == kernel + user
    assert stack_of(capture, 1) == user[:2]
    assert stack_of(capture, 2) == [("prog", 0x2110, False), ("prog", 0x2510, True)]
    assert stack_of(capture, 3) == [("[kernel]", KERNEL_CODE, False)]
    assert capture.info.perf.call_graph == "lbr"


def test_branch_entries_of_other_kinds_are_no_stack() -> None:
    content = program(replace(LBR, branch_sample_type=1))
    content.sample(Sample(ip=0x400110, chain=(USER, 0x400110), branches=CALLS))
    capture = ingested(content)
    assert stack_of(capture, 0) == [("prog", 0x2110, False)]
    assert capture.info.perf.call_graph == "fp"


def test_samples_without_any_address_keep_their_weight() -> None:
    content = program(EventSpec(sample_type=writer.IDENTIFIER | writer.TID | writer.TIME | writer.PERIOD))
    content.sample(Sample(time=2, period=77))
    capture = ingested(content)
    assert stack_of(capture, 0) == [("[unknown]", 0, False)]
    assert capture.samples.weight.tolist() == [77]


def test_samples_are_ordered_by_time_then_position() -> None:
    content = program()
    for time, ip in ((30, 1), (10, 2), (20, 3), (10, 4)):
        content.sample(Sample(ip=0x400000 + ip, time=time, chain=(USER, 0x400000 + ip)))
    capture = ingested(content)
    assert [stack_of(capture, row)[0][1] - 0x2000 for row in range(4)] == [2, 4, 3, 1]
    assert capture.samples.time_ns.tolist() == [10, 10, 20, 30]


def test_without_times_the_order_is_that_of_the_file() -> None:
    content = RecordingWriter([EventSpec(sample_type=writer.IP | writer.TID | writer.PERIOD)])
    content.comm(10, 10, b"first")
    content.mmap2(10, 0x400000, 0x1000, 0, b"/bin/a")
    content.sample(Sample(ip=0x400001))
    content.sample(Sample(ip=0x400002))
    capture = ingested(content)
    assert [stack_of(capture, row)[0] for row in range(2)] == [("a", 1, False), ("a", 2, False)]
    assert capture.samples.time_ns.tolist() == [0, 0]


def test_events_units_and_weights() -> None:
    content = program(
        EventSpec(is_frequency=True, period=997),
        EventSpec(config=2, sample_type=writer.USUAL & ~writer.PERIOD, period=250),
        EventSpec(type=0, sample_type=writer.USUAL & ~writer.PERIOD, period=4000, is_frequency=True),
    )
    content.sample(Sample(time=2, period=1003009, chain=(USER, 0x400010)))
    content.sample(Sample(time=3, chain=(USER, 0x400010)), event=1)
    content.sample(Sample(time=4, chain=(USER, 0x400010)), event=2)
    content.sample(Sample(time=5, sample_id=424242))
    capture = ingested(content)
    assert [(e.name, e.unit, e.frequency_hz, e.period) for e in capture.events] == [
        ("cpu-clock", "ns", 997, 0),
        ("page-faults", "page-faults", 0, 250),
        ("cycles", "cycles", 4000, 0),
    ]
    assert capture.samples.event.tolist() == [0, 1, 2]
    assert capture.samples.weight.tolist() == [1003009, 250, 1]
    assert "1 samples belong to no event of the recording and were left out" in capture.quality.notes
    assert "cycles: samples carry no period; each counts the same" in capture.quality.notes


def test_without_times_names_and_mappings_change_where_the_file_says_so() -> None:
    content = RecordingWriter([EventSpec(sample_type=writer.IP | writer.TID | writer.PERIOD)])
    content.comm(10, 10, b"first")
    content.mmap2(10, 0x400000, 0x1000, 0, b"/bin/a")
    content.sample(Sample(ip=0x400001))
    content.comm(10, 10, b"second", is_exec=True)
    content.mmap2(10, 0x400000, 0x1000, 0, b"/bin/b")
    content.sample(Sample(ip=0x400001))
    content.mmap2(10, 0x400000, 0x1000, 0, b"/bin/c")
    content.sample(Sample(ip=0x400001))
    capture = ingested(content)
    assert [stack_of(capture, row)[0][0] for row in range(3)] == ["a", "b", "c"]
    names = [capture.strings[capture.threads.thread_name[row]] for row in capture.samples.thread.tolist()]
    assert names == ["first", "second", "second"]


@pytest.mark.parametrize(
    ("kind", "config", "name", "unit"),
    [
        (1, 0, "cpu-clock/freq=1999/", "ns"),
        (1, 1, "renamed", "ns"),
        (1, 2, "page-faults/period=7/u", "page-faults/period=7/"),
        (0, 0, "cycles:ppp", "cycles"),
        (0, 3, "task-clock-like", "task-clock-like"),
        (2, 77, "sched:sched_switch", "sched:sched_switch"),
    ],
)
def test_only_clocks_count_time_whatever_they_are_called(kind: int, config: int, name: str, unit: str) -> None:
    content = program(EventSpec(type=kind, config=config))
    described = struct.pack("<II", 1, 8) + bytes(8) + struct.pack("<I", 2) + writer.feature_string(name)
    content.features = {12: described + writer.words(*content.ids(0))}
    content.sample(Sample())
    (event,) = ingested(content).events
    assert (event.name, event.unit) == (name, unit)


@pytest.mark.parametrize(
    ("events", "name"),
    [
        (((1, 2), (1, 0)), "cpu-clock"),
        (((1, 1), (1, 0)), "cpu-clock"),
        (((0, 0), (1, 1)), "task-clock"),
        (((1, 9), (0, 1), (1, 2)), "instructions"),
        (((0, 1), (0, 0)), "cycles"),
        (((1, 9),), "dummy"),
    ],
)
def test_the_settings_are_those_of_the_event_that_is_shown(events: tuple[tuple[int, int], ...], name: str) -> None:
    content = program(*(EventSpec(type=kind, config=config, period=100 + config) for kind, config in events))
    content.sample(Sample())
    settings = ingested(content).info.perf
    assert settings.event == name
    assert settings.period == 100 + next(config for kind, config in events if opened_name(kind, config) == name)


def opened_name(kind: int, config: int) -> str:
    return {0: ("cycles", "instructions"), 1: ("cpu-clock", "task-clock", "page-faults", *[""] * 6, "dummy")}[kind][config]


def test_group_samples_stand_for_what_each_counter_gained() -> None:
    group = EventSpec(sample_type=writer.USUAL | writer.READ, read_format=4 | 8 | 16, is_inherited=False)
    content = program(
        group, EventSpec(config=2, sample_type=group.sample_type, read_format=group.read_format, is_inherited=False)
    )
    clock, faults = content.ids(0)[0], content.ids(1)[0]
    for time, (ns, count) in enumerate(((1000, 5), (2500, 5), (4000, 9)), 2):
        content.sample(Sample(time=time, period=1, chain=(USER, 0x400010), read=(2, ns, clock, 0, count, faults, 0)))
    capture = ingested(content)
    rows = list(zip(capture.samples.event.tolist(), capture.samples.weight.tolist(), strict=True))
    assert rows == [(0, 1000), (1, 5), (0, 1500), (0, 1500), (1, 4)]


def test_counters_go_on_through_samples_that_do_not_count() -> None:
    """What the launcher's process did before the exec is not the program's."""
    group = EventSpec(sample_type=writer.USUAL | writer.READ, read_format=4 | 8, is_inherited=False)
    content = RecordingWriter([group])
    content.comm(10, 10, b"program", time=5, is_exec=True)
    clock = content.ids(0)[0]
    for time, ns in ((3, 1000), (4, 1500), (6, 1700), (7, 2000)):
        content.sample(Sample(time=time, chain=(USER, 0x400010), read=(2, ns, clock, 7 * time, 424242)))
    capture = ingested(content, RunMode.PROFILED)
    assert capture.samples.weight.tolist() == [200, 300]
    assert capture.samples.event.tolist() == [0, 0]
    assert "4 samples belong to no event of the recording and were left out" in capture.quality.notes


def test_threads_by_name_and_time() -> None:
    content = program()
    content.fork(10, 11, 10, 10, time=3)
    content.comm(10, 11, b"worker", time=5)
    content.comm(10, 10, b"renamed", time=7)
    content.fork(20, 20, 10, 11, time=8)
    for time, tid in ((4, 11), (6, 11), (8, 11), (8, 10), (6, 10)):
        content.sample(Sample(time=time, tid=tid, chain=(USER, 0x400010)))
    content.sample(Sample(time=9, pid=20, tid=20, chain=(USER, 0x400010)))
    content.sample(Sample(time=10, pid=50, tid=51, chain=(USER, 0x400010)))
    content.sample(Sample(time=11, pid=0, tid=0, chain=(KERNEL, KERNEL_CODE), misc=1))
    content.sample(Sample(time=12, pid=-1, tid=-1, chain=(KERNEL, KERNEL_CODE), misc=1))
    capture = ingested(content)
    names = [
        (int(t.tid[row]), capture.strings[t.process_name[row]], capture.strings[t.thread_name[row]])
        for t in [capture.threads]
        for row in capture.samples.thread.tolist()
    ]
    assert names == [
        (11, "prog", "prog"),
        (11, "prog", "worker"),
        (10, "prog", "prog"),
        (11, "renamed", "worker"),
        (10, "renamed", "renamed"),
        (20, "worker", "worker"),
        (51, ":51", ":51"),
        (0, "swapper", "swapper"),
        (-1, ":-1", ":-1"),
    ]
    assert len(capture.threads) == 9


@pytest.mark.parametrize(("before", "is_noted"), [(2, False), (3, True)])
def test_a_few_samples_of_the_launcher_are_worth_no_note(before: int, is_noted: bool) -> None:
    """2 of 100 kept samples are 2 %, 3 are more."""
    content = RecordingWriter()
    content.comm(10, 10, b"launcher", time=1)
    content.mmap2(10, 0x400000, 0x1000, 0, b"/bin/launcher", time=1)
    for time in range(2, 2 + before):
        content.sample(Sample(ip=0x400010, time=time, chain=(USER, 0x400010)))
    content.comm(10, 10, b"prog", time=10, is_exec=True)
    content.mmap2(10, 0x400000, 0x1000, 0, b"/bin/prog", time=11)
    for time in range(20, 120):
        content.sample(Sample(ip=0x400010, time=time, chain=(USER, 0x400010)))
    capture = ingested(content, RunMode.PROFILED)
    assert len(capture.samples) == 100
    noted = f"{before} samples from before the program started were left out" in capture.quality.notes
    assert noted == is_noted


@pytest.mark.parametrize(
    ("mapped_id", "header_id", "known_id", "expected"),
    [
        (b"", b"", b"\x0a" * 20, b"\x0a" * 20),  # the program's file was gone when perf wrote its header
        (b"", b"\x0b" * 20, b"\x0a" * 20, b"\x0a" * 20),  # another build lay there by then
        (b"\x0c" * 20, b"\x0b" * 20, b"\x0a" * 20, b"\x0c" * 20),  # what the kernel saw is certain
        (b"", b"\x0b" * 20, b"", b"\x0b" * 20),
        (b"", b"", b"", b""),
    ],
)
def test_build_id_of_the_program(mapped_id: bytes, header_id: bytes, known_id: bytes, expected: bytes) -> None:
    content = RecordingWriter(features={2: writer.build_id_entry(b"/bin/prog", header_id)} if header_id else {})
    content.comm(10, 10, b"prog", time=1)
    content.mmap2(10, 0x400000, 0x1000, 0, b"/bin/prog", time=1, build_id=mapped_id)
    content.mmap2(10, 0x500000, 0x1000, 0, b"/bin/other", time=1)
    content.sample(Sample(ip=0x400010, time=5, chain=(USER, 0x400010, 0x500010)))
    recording = open_recording(io.BytesIO(content.build()), "test.data")
    known = replace(info(RunMode.PROFILED), program=ProgramFacts(path="/bin/prog", build_id=known_id.hex()))
    capture = ingest(recording, known, IngestEnvironment(NoImages(), None))
    assert {dso.path: dso.build_id for dso in capture.dsos if dso.kind == DsoKind.FILE} == {
        "/bin/prog": expected,
        "/bin/other": b"",
    }


def test_samples_from_before_the_programs_own_exec() -> None:
    content = RecordingWriter()
    content.comm(10, 10, b"launcher", time=1)
    content.comm(10, 10, b"prog", time=10, is_exec=True)
    content.mmap2(10, 0x400000, 0x1000, 0, b"/bin/prog", time=11)
    content.fork(20, 20, 10, 10, time=12)
    content.comm(20, 20, b"child", time=20, is_exec=True)
    for time, pid in ((5, 10), (12, 10), (15, 20), (25, 20)):
        content.sample(Sample(time=time, pid=pid, tid=pid, chain=(USER, 0x400010)))
    profiled = ingested(content, RunMode.PROFILED)
    assert profiled.samples.time_ns.tolist() == [12, 15, 25]
    assert "1 sample from before the program started was left out" in profiled.quality.notes
    assert ingested(content).samples.time_ns.tolist() == [5, 12, 15, 25]


def test_losses_and_throttling() -> None:
    content = program()
    content.lost(3)
    content.lost_samples(4)
    content.throttle()
    content.sample(Sample(time=2, chain=(USER, 0x400010)))
    quality = ingested(content).quality
    assert (quality.lost_samples, quality.throttled, quality.samples) == (7, 1, 1)
    content.events = (EventSpec(read_format=16),)
    assert ingested(content).quality.lost_samples == 4


@pytest.mark.parametrize("periods", [(5, 2**63), (5, 2**64 - 1), (2**61, 2**61 + 2**20)])
def test_periods_that_cannot_be_are_refused_with_their_place(periods: tuple[int, int]) -> None:
    content = program()
    for time, period in enumerate(periods):
        content.sample(Sample(time=time, period=period, chain=(USER, 0x400010)))
    place = content.build().index(content.records[-1])
    with pytest.raises(FormatError, match=f"test.data: byte {place}: the period of this sample is too large"):
        ingested(content)


def test_a_recording_without_samples_says_why() -> None:
    capture = ingested(program())
    assert len(capture.samples) == len(capture.stacks) == len(capture.frames) == 0
    (note,) = [note for note in capture.quality.notes if "no samples" in note]
    assert note == "no samples; the program may have ended before the first sample of cpu-clock"
    content = program()
    content.lost(3)
    assert "no samples; all 3 were lost" in ingested(content).quality.notes


def test_states_without_binaries() -> None:
    content = program()
    content.sample(Sample(time=2, chain=(USER, 0x400010, 0x400020)))
    content.sample(Sample(time=3, chain=(KERNEL, KERNEL_CODE), misc=1))
    content.sample(Sample(time=4, chain=(USER, *range(0x400000, 0x400000 + 127))))
    capture = ingested(content)
    assert capture.samples.state.tolist() == [StackState.ROOTLESS, StackState.NO_USER_STACK, StackState.TRUNCATED]
    assert (capture.quality.rootless, capture.quality.no_user_stack, capture.quality.truncated) == (1, 1, 1)


def test_garbage_in_frame_pointer_chains_is_kept_as_unmapped() -> None:
    content = program()
    garbage = [0, 0x7FFF_FFFF_FFFF, 0x8000_0000_0000, 0x6161_6161_6161_6161, 2**63 + 5, 0xFFFE_0000_0000_0000, 0x400020]
    content.sample(Sample(time=2, chain=(USER, 0x400010, *garbage)))
    content.sample(Sample(time=3, pid=99, tid=99, chain=(USER, 0, 0x400010)))
    capture = ingested(content)
    assert [offset for _, offset, _ in stack_of(capture, 0)] == [0x2010, *garbage[:-1], 0x2020]
    assert [name for name, _, _ in stack_of(capture, 0)] == ["prog", *["[unknown]"] * 6, "prog"]
    assert stack_of(capture, 1) == [("[unknown]", 0, False), ("[unknown]", 0x400010, True)]


def test_the_number_of_a_deferred_user_stack_is_no_address() -> None:
    deferred = 2**64 - 640
    content = program()
    content.sample(Sample(ip=KERNEL_CODE, time=2, chain=(KERNEL, KERNEL_CODE, KERNEL_CODE + 8, deferred, 0x400010), misc=1))
    content.sample(Sample(ip=0x400020, time=3, chain=(USER, 0x400020, 0x400030)))
    content.sample(Sample(ip=0x400040, time=4, chain=(deferred, 0x400010)))
    content.record(22, 2, writer.words(0x400010, 2, USER, 0x400020))
    content.sample(Sample(ip=KERNEL_CODE, time=5, chain=(KERNEL, KERNEL_CODE, deferred), misc=1))
    capture = ingested(content)
    assert [stack_of(capture, row) for row in range(4)] == [
        [("[kernel]", KERNEL_CODE, False), ("[kernel]", KERNEL_CODE + 8, True)],
        [("prog", 0x2020, False), ("prog", 0x2030, True)],
        [("prog", 0x2040, False)],
        [("[kernel]", KERNEL_CODE, False)],
    ]
    assert "1 record of unknown type 22 skipped" in capture.quality.notes


def test_guest_addresses_are_never_resolved_here() -> None:
    content = program()
    content.sample(Sample(time=2, chain=(writer.GUEST_KERNEL_MARKER, KERNEL_CODE, USER, 0x400010)))
    content.sample(Sample(time=3, chain=(USER, 0x400010)))
    capture = ingested(content)
    assert stack_of(capture, 0) == [("[guest]", KERNEL_CODE, False), ("prog", 0x2010, False)]
    assert stack_of(capture, 1) == [("prog", 0x2010, False)]


def test_a_32_bit_kernel_is_told_by_its_marker() -> None:
    content = program()
    content.features = {6: writer.feature_string("armv7l")}
    content.sample(Sample(time=2, chain=(KERNEL, 0xC0001234, USER, 0x400010)))
    capture = ingested(content)
    assert stack_of(capture, 0) == [("[kernel]", 0xC0001234, False), ("prog", 0x2010, False)]
    assert [is_32_bit(a) for a in ("armv7l", "i686", "x86_64", "aarch64", "mips64", "")] == [
        True,
        True,
        False,
        False,
        False,
        False,
    ]


def test_many_address_spaces_do_not_mix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callchains, "_GENERATION_BITS", 2)
    content = RecordingWriter()
    for pid in range(1, 40):
        content.comm(pid, pid, b"p", time=1)
        content.mmap2(pid, 0x400000, 0x1000, 0, f"/bin/p{pid}".encode(), time=1)
    for row in range(120):
        pid = row * 7 % 39 + 1
        content.sample(Sample(time=10 + row, pid=pid, tid=pid, chain=(USER, 0x400010, 0x400020, *[0x400030] * (row % 3))))
    capture = ingested(content)
    for row in range(120):
        pid = int(capture.threads.pid[capture.samples.thread[row]])
        assert {name for name, _, _ in stack_of(capture, row)} == {f"p{pid}"}


def test_facts_fill_only_what_is_empty() -> None:
    content = program(EventSpec(is_frequency=True, period=1999))
    content.features = {
        3: writer.feature_string("host-1"),
        4: writer.feature_string("6.1.0"),
        5: writer.feature_string("6.1.187"),
        11: writer.feature_strings(["perf", "record", "--", "./prog", "x"]),
    }
    recording = open_recording(io.BytesIO(content.build()), "test.data")
    environment = IngestEnvironment(NoImages(), None)
    filled = ingest(recording, info(), environment).info
    assert (filled.host.hostname, filled.host.kernel) == ("host-1", "6.1.0")
    assert (filled.perf.event, filled.perf.frequency_hz, filled.perf.call_graph) == ("cpu-clock", 1999, "fp")
    assert (filled.perf.perf_version, filled.command) == ("6.1.187", ("./prog", "x"))
    given_info = CaptureInfo(info().identity, host=HostFacts(hostname="mine"), command=("other",))
    kept = ingest(recording, given_info, environment).info
    assert (kept.host, kept.command) == (HostFacts(hostname="mine"), ("other",))


ADDRESSES = st.sampled_from([0x400010, 0x400020, 0x400030, 0x999000, KERNEL_CODE, KERNEL_CODE + 64, KERNEL, USER, 0])


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 10**6), st.lists(ADDRESSES, max_size=8)), max_size=30))
def test_nothing_is_lost(rows: list[tuple[int, int, list[int]]]) -> None:
    content = program()
    for time, period, chain in rows:
        content.sample(Sample(time=time, period=period, chain=chain))
    capture = ingested(content)
    assert len(capture.samples) == len(rows)
    assert int(capture.samples.weight.sum()) == sum(period for _, period, _ in rows)
    assert (capture.stacks.prefix < np.arange(len(capture.stacks))).all()
    ordered = sorted(rows, key=lambda row: row[0])
    for row, (_, _, chain) in enumerate(ordered):
        addresses = [at for at in chain if at < 2**64 - 4095] or [0x401000]
        offsets = [at - 0x400000 + 0x2000 if 0x400000 <= at < 0x410000 else at for at in addresses]
        assert [offset for _, offset, _ in stack_of(capture, row)] == offsets
    counts = capture.quality
    assert counts.complete + counts.gap_possible + counts.rootless + counts.truncated + counts.no_user_stack == len(rows)


def outcome(content: bytes) -> Capture | FormatError:
    try:
        recording = open_recording(io.BytesIO(content), "test.data")
        return ingest(recording, info(), IngestEnvironment(NoImages(), NamedKernel()))
    except FormatError as error:
        return error


@given(st.data())
def test_damaged_records_are_refused_or_give_a_sound_capture(data: st.DataObject) -> None:
    content = program(EventSpec(sample_type=writer.USUAL | writer.REGS_USER | writer.STACK_USER, user_registers=0xFF01FF))
    content.fork(11, 11, 10, 10, time=2)
    for time in (3, 4):
        chain = (KERNEL, KERNEL_CODE, USER, 0x400010, 0x400020)
        content.sample(Sample(time=time, chain=chain, registers=range(17), stack=bytes(range(64)), dynamic_size=48))
    whole = bytearray(content.build())
    first = whole.index(content.records[0])
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(first, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    capture = outcome(bytes(whole))
    if isinstance(capture, FormatError):
        assert str(capture).startswith("test.data: byte ")
        return
    assert (capture.stacks.prefix < np.arange(len(capture.stacks))).all()
    assert not len(capture.samples) or int(capture.samples.stack.max()) < len(capture.stacks)
    assert set(capture.samples.state.tolist()) <= set(map(int, StackState))


def test_records_of_unknown_types_are_told_in_one_line() -> None:
    content = program()
    for kind in (200, 300, 200):
        content.record(kind, 0, bytes(16))
    content.sample(Sample())
    capture = ingested(content)
    assert capture.quality.skipped_records == ((200, 2), (300, 1))
    assert capture.quality.notes == ("3 records of unknown types 200, 300 skipped",)


@pytest.mark.parametrize(
    ("periods", "note"),
    [
        ([1000] * 200, ""),
        ([1000] * 200 + [60_000], "cpu-clock: one of 201 samples holds 23% of the weight; its period may be wrong"),
        ([1, 1, 5, 36, 89, 586, 3326, 15566, 97316, 410302, 714311, 717905], ""),
        ([1000] * 20 + [1 << 50], "cpu-clock: one of 21 samples holds 100% of the weight; its period may be wrong"),
        ([0] * 20, ""),
        ([1, 1 << 40], ""),
    ],
)
def test_a_period_beyond_reason_is_told(periods: list[int], note: str) -> None:
    content = program()
    for time, period in enumerate(periods):
        content.sample(Sample(time=time, period=period))
    capture = ingested(content)
    assert capture.samples.weight.tolist() == periods
    assert [line for line in capture.quality.notes if "weight" in line] == ([note] if note else [])
