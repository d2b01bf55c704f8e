"""Whose addresses they are: kernel, modules, programs of 32 and 64 bits, guests, branch records."""

from __future__ import annotations

from dataclasses import replace

import pytest

from collectors.ingest import callchains
from collectors.ingest.ingest_tables import is_32_bit
from profiler.model.dso import DsoKind
from profiler.model.frame_table import CpuMode
from support import perf_data_writer as writer
from support.ingested_recordings import KERNEL, KERNEL_CODE, MODULE_CODE, USER, NamedKernel, ingested, program, stack_of
from support.perf_data_writer import EventSpec, RecordingWriter, Sample


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


def test_user_code_has_no_callers_in_the_kernel() -> None:
    """Broken frame-pointer chains take any number for a return address."""
    content = program()
    garbage = 0xFFFFFFFC75A6F1C2
    content.sample(Sample(time=1, chain=(KERNEL, KERNEL_CODE)))
    content.sample(Sample(time=2, chain=(USER, 0x400100, garbage, 0x400200, garbage, KERNEL_CODE)))
    content.sample(Sample(time=3, chain=(KERNEL, KERNEL_CODE, USER, 0x400100)))
    capture = ingested(content)
    assert [stack_of(capture, row) for row in range(3)] == [
        [("[kernel]", KERNEL_CODE, False)],
        [
            ("prog", 0x2100, False),
            ("[unknown]", garbage, True),
            ("prog", 0x2200, True),
            ("[unknown]", garbage, True),
            ("[unknown]", KERNEL_CODE, True),
        ],
        [("[kernel]", KERNEL_CODE, False), ("prog", 0x2100, False)],
    ]


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
