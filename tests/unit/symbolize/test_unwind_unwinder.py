"""Single steps of the unwinder on stacks laid out by hand, over the rules of a small assembler program."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
import pytest

from profiler.model.arrays import Int32Column, Int64Column, UInt64Column
from support.elf_programs import compile_program, load_image, system_library, tool_output
from symbolize.elf.image import ElfImage
from symbolize.unwind.unwinder import MAX_DEPTH, EndReason, StackDumps, Unwinder, UnwoundStacks

RBX, RBP, RSP, R10, RIP = 3, 6, 7, 10, 16
BASE = 0x5555_0000_0000
STACK = 0x7FFF_0000_1000

# Code is never run: only its addresses and its call frame information count.
ASSEMBLER = """
    .text
    .globl _start
    .type _start, @function
_start:
    .cfi_startproc
    .cfi_undefined rip
    .fill 16, 1, 0x90
    .cfi_endproc
    .size _start, .-_start

    .type by_stack_pointer, @function
by_stack_pointer:
    .cfi_startproc
    .cfi_def_cfa_offset 32
    .fill 16, 1, 0x90
    .cfi_endproc
    .size by_stack_pointer, .-by_stack_pointer

    .type by_frame_pointer, @function
by_frame_pointer:
    .cfi_startproc
    .cfi_def_cfa rbp, 16
    .cfi_offset rbp, -16
    .fill 16, 1, 0x90
    .cfi_endproc
    .size by_frame_pointer, .-by_frame_pointer

    .type saves_pointer_below, @function
saves_pointer_below:
    .cfi_startproc
    .cfi_def_cfa_offset 8
    .cfi_offset rbp, -16
    .fill 16, 1, 0x90
    .cfi_endproc
    .size saves_pointer_below, .-saves_pointer_below

    .type by_rbx, @function
by_rbx:
    .cfi_startproc
    .cfi_def_cfa rbx, 16
    .fill 16, 1, 0x90
    .cfi_endproc
    .size by_rbx, .-by_rbx

    .type saves_rbx, @function
saves_rbx:
    .cfi_startproc
    .cfi_def_cfa_offset 16
    .cfi_offset rbx, -16
    .fill 16, 1, 0x90
    .cfi_endproc
    .size saves_rbx, .-saves_rbx

    .type by_r10, @function
by_r10:
    .cfi_startproc
    .cfi_def_cfa r10, 8
    .fill 16, 1, 0x90
    .cfi_endproc
    .size by_r10, .-by_r10

    .type realigned, @function
realigned:
    .cfi_startproc
    .cfi_escape 0x0f, 3, 0x76, 0x78, 0x06
    .cfi_escape 0x10, 6, 2, 0x76, 0
    .fill 16, 1, 0x90
    .cfi_endproc
    .size realigned, .-realigned

    .type own_caller, @function
own_caller:
    .cfi_startproc
    .cfi_def_cfa_offset 0
    .cfi_offset rip, 8
    .fill 16, 1, 0x90
    .cfi_endproc
    .size own_caller, .-own_caller

    .type returns_by_register, @function
returns_by_register:
    .cfi_startproc
    .cfi_def_cfa rsp, 8
    .cfi_register rip, rcx
    .fill 16, 1, 0x90
    .cfi_endproc
    .size returns_by_register, .-returns_by_register

    .type trampoline, @function
trampoline:
    .cfi_startproc
    .cfi_signal_frame
    .cfi_escape 0x0f, 3, 0x77, 16, 0x06
    .cfi_escape 0x10, 3, 2, 0x77, 8
    .cfi_escape 0x10, 16, 2, 0x77, 0
    .fill 16, 1, 0x90
    .cfi_endproc
    .size trampoline, .-trampoline

    .type without_rules, @function
without_rules:
    .fill 16, 1, 0x90
    .size without_rules, .-without_rules

    .type ends_with_syscall, @function
ends_with_syscall:
    .cfi_startproc
    .cfi_def_cfa_offset 8
    .fill 14, 1, 0x90
    syscall
    .cfi_endproc
    .size ends_with_syscall, .-ends_with_syscall
    .fill 16, 1, 0x90

    .globl clone
    .type clone, @function
clone:
    .fill 16, 1, 0x90
    .size clone, .-clone
    .section .note.GNU-stack,"",@progbits
"""


@dataclass
class Program:
    """``address``: runtime address of every function; everything executable is mapped at ``BASE``."""

    image: ElfImage
    address: dict[str, int]

    def resolve(self, address_space: Int64Column, runtime_address: UInt64Column) -> tuple[Int32Column, UInt64Column]:
        offset = runtime_address - np.uint64(BASE)
        mapped = (self.image.link_addresses(offset) != np.uint64(2**64 - 1)) & (address_space == 0)
        return np.where(mapped, 0, -1).astype(np.int32), np.where(mapped, offset, runtime_address)

    def unwind(self, *stacks: Stack, max_depth: int = MAX_DEPTH) -> UnwoundStacks:
        words = np.array([word for stack in stacks for word in stack.words] or [0], np.uint64)
        sizes = [len(stack.words) for stack in stacks]
        registers = np.zeros((len(stacks), 17), np.uint64)
        for row, stack in enumerate(stacks):
            registers[row, RIP], registers[row, RSP] = stack.pc, stack.sp
            for number, value in stack.registers.items():
                registers[row, number] = value
        dumps = StackDumps(
            registers=registers,
            has_register=np.ones(17, np.bool_),
            words=words,
            dump_start=np.cumsum([0, *sizes])[:-1].astype(np.int64),
            dump_bytes=np.array([8 * len(stack.words) if stack.size is None else stack.size for stack in stacks], np.int64),
            address_space=np.zeros(len(stacks), np.int64),
        )
        return Unwinder(lambda _: self.image).unwind(dumps, self, max_depth)

    def names(self, stacks: UnwoundStacks, sample: int = 0) -> list[str]:
        """function+distance of the frames, hexadecimal for unmapped ones."""
        found = []
        for k in range(stacks.frame_start[sample], stacks.frame_start[sample + 1]):
            runtime = int(stacks.offset[k]) + (BASE if stacks.dso[k] >= 0 else 0)
            name, start = max(((n, a) for n, a in self.address.items() if a <= runtime), key=lambda p: p[1], default=("", 0))
            found.append(f"{name}+{runtime - start}" if stacks.dso[k] >= 0 else hex(runtime))
        return found

    def at(self, name: str, distance: int = 4) -> int:
        return self.address[name] + distance


@dataclass
class Stack:
    """``words`` lie at ``sp`` upwards."""

    pc: int
    words: list[int]
    registers: dict[int, int] = field(default_factory=dict)
    sp: int = STACK
    size: int | None = None


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    path = compile_program(tmp_path_factory.mktemp("rules"), "rules.s", ASSEMBLER, ["-nostdlib", "-static-pie"])
    image = load_image(path)
    listed = re.findall(r"^([0-9a-f]{16}) [tT] (\w+)$", tool_output("nm", str(path)), re.MULTILINE)
    link = np.array([int(address, 16) for address, _ in listed], np.uint64)
    offsets = image.file_offsets(link).tolist()
    return Program(image, {name: BASE + offset for (_, name), offset in zip(listed, offsets, strict=True)})


def reason(stacks: UnwoundStacks, sample: int = 0) -> EndReason:
    return EndReason(int(stacks.end_reason[sample]))


def test_stack_pointer_rules_to_the_thread_entry(program: Program) -> None:
    words = [1, 2, 3, program.at("by_stack_pointer", 9), 4, 5, 6, program.at("_start", 8), 7]
    stacks = program.unwind(Stack(program.at("by_stack_pointer"), words))
    assert program.names(stacks) == ["by_stack_pointer+4", "by_stack_pointer+9", "_start+8"]
    assert stacks.is_return_address.tolist() == [False, True, True]
    assert reason(stacks) == EndReason.THREAD_ENTRY


def test_return_address_behind_a_function_belongs_to_that_function(program: Program) -> None:
    """A call that never returns may be the last instruction: its return address is the next function's first byte."""
    words = [1, 2, 3, program.at("by_stack_pointer", 16), 4, 5, 6, program.at("_start", 8)]
    stacks = program.unwind(Stack(program.at("by_stack_pointer"), words))
    assert len(stacks.dso) == 3
    assert int(stacks.offset[1]) + BASE == program.at("by_frame_pointer", 0)
    assert reason(stacks) == EndReason.THREAD_ENTRY


def test_frame_pointer_rules(program: Program) -> None:
    words = [0, STACK + 32, program.at("by_frame_pointer"), 0, 99, program.at("_start")]
    stacks = program.unwind(Stack(program.at("by_frame_pointer"), words, {RBP: STACK + 8}))
    assert program.names(stacks) == ["by_frame_pointer+4", "by_frame_pointer+4", "_start+4"]


def test_frame_pointer_keeps_its_value_when_its_slot_is_not_in_the_dump(program: Program) -> None:
    words = [program.at("by_frame_pointer"), 0, 5, program.at("_start")]
    stacks = program.unwind(Stack(program.at("saves_pointer_below"), words, {RBP: STACK + 16}))
    assert program.names(stacks) == ["saves_pointer_below+4", "by_frame_pointer+4", "_start+4"]


def test_other_registers_of_the_innermost_frame(program: Program) -> None:
    words = [0, 0, program.at("_start")]
    for name, number in (("by_rbx", RBX), ("by_r10", R10)):
        cfa = {"by_rbx": STACK + 8, "by_r10": STACK + 16}[name]
        assert program.names(program.unwind(Stack(program.at(name), words, {number: cfa}))) == [f"{name}+4", "_start+4"]


def test_callee_saved_registers_are_restored_on_the_way(program: Program) -> None:
    words = [STACK + 24, program.at("by_rbx"), 0, 0, program.at("_start")]
    stacks = program.unwind(Stack(program.at("saves_rbx"), words, {RBX: 12345}), Stack(program.at("_start"), [0]))
    assert program.names(stacks) == ["saves_rbx+4", "by_rbx+4", "_start+4"]
    assert program.names(stacks, 1) == ["_start+4"]
    assert [reason(stacks, k) for k in (0, 1)] == [EndReason.THREAD_ENTRY] * 2


def test_caller_saved_registers_are_not_trusted_behind_a_call(program: Program) -> None:
    words = [0, 0, 0, program.at("by_r10"), program.at("_start")]
    stacks = program.unwind(Stack(program.at("by_stack_pointer"), words, {R10: STACK + 32}))
    assert program.names(stacks) == ["by_stack_pointer+4", "by_r10+4"]
    assert reason(stacks) == EndReason.NO_CFI


def test_realigned_frames_find_the_cfa_in_memory_and_restore_the_pointer(program: Program) -> None:
    words = [0, STACK + 48, STACK + 64, 0, 0, program.at("by_frame_pointer"), 0, 0, 3, program.at("_start")]
    # [rbp - 8] = CFA, so [CFA - 8] = return address; [rbp] = the caller's rbp.
    stacks = program.unwind(Stack(program.at("realigned"), words, {RBP: STACK + 16}))
    assert program.names(stacks) == ["realigned+4", "by_frame_pointer+4", "_start+4"]


def test_return_address_in_a_register(program: Program) -> None:
    words = [0, 0, 0, 0, program.at("_start")]
    stacks = program.unwind(Stack(program.at("returns_by_register"), words, {2: program.at("by_stack_pointer")}))
    assert program.names(stacks) == ["returns_by_register+4", "by_stack_pointer+4", "_start+4"]


def test_interrupted_frames_are_exact(program: Program) -> None:
    handler = [0, 0, 0, program.at("trampoline", 0)]
    context = [program.at("by_rbx", 0), STACK + 64, STACK + 56]  # RIP, RBX, RSP of the interrupted code
    words = [*handler, *context, 0, 0, program.at("_start")]
    stacks = program.unwind(Stack(program.at("by_stack_pointer"), words))
    # The trampoline's first address is pushed by the kernel: its rules begin one byte before in libc; here they do not.
    assert program.names(stacks)[0] == "by_stack_pointer+4"
    words[3] = program.at("trampoline", 1)
    stacks = program.unwind(Stack(program.at("by_stack_pointer"), words))
    assert program.names(stacks) == ["by_stack_pointer+4", "trampoline+1", "by_rbx+0", "_start+4"]
    assert stacks.is_return_address.tolist() == [False, False, False, True]
    assert reason(stacks) == EndReason.THREAD_ENTRY


@pytest.mark.parametrize(
    ("words_kept", "size", "frames"),
    [(8, None, 3), (7, None, 2), (4, None, 2), (3, None, 1), (0, None, 1), (8, 63, 2), (8, 32, 2), (8, 31, 1)],
)
def test_short_dumps_end_stacks_and_make_up_nothing(program: Program, words_kept: int, size: int | None, frames: int) -> None:
    """A word counts only if all of its 8 bytes are in the dump."""
    words = [1, 2, 3, program.at("by_stack_pointer"), 4, 5, 6, program.at("_start")][:words_kept]
    stacks = program.unwind(Stack(program.at("by_stack_pointer"), words, size=size))
    assert len(stacks.dso) == frames
    assert reason(stacks) == (EndReason.THREAD_ENTRY if frames == 3 else EndReason.DUMP_LIMIT)


def test_zero_return_address_ends_a_thread(program: Program) -> None:
    stacks = program.unwind(Stack(program.at("by_stack_pointer"), [1, 2, 3, 0]))
    assert reason(stacks) == EndReason.THREAD_ENTRY
    assert len(stacks.dso) == 1


def test_unmapped_callers_are_shown_and_end_the_stack(program: Program) -> None:
    stacks = program.unwind(Stack(program.at("by_stack_pointer"), [1, 2, 3, 0x1234, 5, 6]))
    assert program.names(stacks) == ["by_stack_pointer+4", "0x1234"]
    assert stacks.dso.tolist() == [0, -1]
    assert reason(stacks) == EndReason.UNMAPPED


def test_loops_and_deep_stacks_end(program: Program) -> None:
    stacks = program.unwind(Stack(program.at("own_caller"), [0, program.at("own_caller")] * 4))
    assert reason(stacks) == EndReason.LOOP
    deep = Stack(program.at("by_stack_pointer"), [0, 0, 0, program.at("by_stack_pointer")] * 200)
    stacks = program.unwind(deep)
    assert len(stacks.dso) == 201  # all that the dump holds
    assert reason(stacks) == EndReason.DUMP_LIMIT
    stacks = program.unwind(deep, max_depth=5)
    assert len(stacks.dso) == 5
    assert reason(stacks) == EndReason.DEPTH_LIMIT


@pytest.mark.parametrize(
    ("pointer", "return_to", "found"),
    [
        (STACK + 8, "_start", True),
        (STACK, "_start", True),
        (STACK - 8, "_start", False),  # below the stack pointer
        (STACK + 0x4008, "_start", False),  # too far above
        (STACK + 8, "nowhere", False),  # what lies there is no code
    ],
)
def test_without_rules_the_frame_pointer_is_followed_when_plausible(
    program: Program, pointer: int, return_to: str, found: bool
) -> None:
    words = [0] * 0x900
    slot = max(pointer - STACK, 0) // 8
    words[slot : slot + 2] = [0, program.at("_start") if return_to == "_start" else 0xDEAD]
    stacks = program.unwind(Stack(program.at("without_rules"), words, {RBP: pointer}))
    assert program.names(stacks) == ["without_rules+4", *(["_start+4"] if found else [])]
    assert reason(stacks) == (EndReason.THREAD_ENTRY if found else EndReason.NO_CFI)


def test_thread_entries_without_rules_are_known_by_name(program: Program) -> None:
    words = [0, 0, program.at("_start")]
    stacks = program.unwind(Stack(program.at("clone"), words, {RBP: STACK + 8}))
    assert program.names(stacks) == ["clone+4"]
    assert reason(stacks) == EndReason.THREAD_ENTRY


def test_a_thread_in_a_system_call_stands_behind_the_rules(program: Program) -> None:
    stacks = program.unwind(Stack(program.at("ends_with_syscall", 16), [program.at("_start"), 0]))
    assert program.names(stacks)[1:] == ["_start+4"]
    assert reason(stacks) == EndReason.THREAD_ENTRY


def test_code_behind_a_function_is_not_taken_for_that_function(program: Program) -> None:
    stacks = program.unwind(Stack(program.at("without_rules", 0), [0] * 4 + [program.at("_start")], {RBP: 0}))
    assert program.names(stacks) == ["without_rules+0"]
    assert reason(stacks) == EndReason.NO_CFI


def test_stack_pointer_off_an_8_byte_boundary(program: Program) -> None:
    target = program.at("_start")
    stream = (bytes(24 + 4) + target.to_bytes(8, "little") + bytes(12)).ljust(48, b"\0")
    words = np.frombuffer(stream, "<u8").tolist()
    cfa = STACK + 24 + 4 + 8
    stacks = program.unwind(Stack(program.at("by_rbx"), words, {RBX: cfa - 16}))
    assert program.names(stacks) == ["by_rbx+4", "_start+4"]


def test_nothing_can_be_unwound_without_the_two_pointers(program: Program) -> None:
    dumps = StackDumps(
        registers=np.zeros((2, 17), np.uint64),
        has_register=np.zeros(17, np.bool_),
        words=np.zeros(4, np.uint64),
        dump_start=np.zeros(2, np.int64),
        dump_bytes=np.full(2, 32, np.int64),
        address_space=np.zeros(2, np.int64),
    )
    stacks = Unwinder(lambda _: program.image).unwind(dumps, program)
    assert stacks.frame_start.tolist() == [0, 0, 0]
    assert stacks.end_reason.tolist() == [EndReason.NO_REGISTERS] * 2


def test_no_samples(program: Program) -> None:
    assert program.unwind().frame_start.tolist() == [0]


def test_missing_images_leave_the_innermost_frame(program: Program) -> None:
    words = np.array([0, 0, 0, program.at("_start")], np.uint64)
    registers = np.zeros((1, 17), np.uint64)
    registers[0, [RIP, RSP]] = program.at("by_stack_pointer"), STACK
    dumps = StackDumps(registers, np.ones(17, np.bool_), words, *(np.array([k], np.int64) for k in (0, 32, 0)))
    calls: list[int] = []
    unwinder = Unwinder(lambda row: calls.append(row))
    for _ in range(3):
        stacks = unwinder.unwind(dumps, program)
    assert stacks.offset.tolist() == [program.at("by_stack_pointer") - BASE]
    assert reason(stacks) == EndReason.NO_CFI
    assert calls == [0]


def test_questions_about_single_places(program: Program) -> None:
    names = ["by_stack_pointer", "by_frame_pointer", "realigned", "by_rbx", "without_rules", "_start", "clone"]
    offsets = np.array([program.at(name) - BASE for name in names], np.uint64)
    unwinder = Unwinder(lambda _: program.image)
    dso = np.zeros(len(names), np.int32)
    assert unwinder.cfa_from_frame_pointer(dso, offsets).tolist() == [False, True, True, False, False, False, False]
    assert unwinder.is_thread_entry(dso, offsets).tolist() == [False, False, False, False, False, True, True]
    unmapped = np.full(len(names), -1, np.int32)
    assert not unwinder.cfa_from_frame_pointer(unmapped, offsets).any()
    assert not unwinder.is_thread_entry(unmapped, offsets).any()


def test_the_caller_of_main_in_a_stripped_libc_is_a_thread_entry() -> None:
    """Where frame pointers end: behind ``main`` comes ``call __libc_start_call_main``'s ``mov %eax,%edi; call exit``."""
    path = system_library("libc.so.6")
    image = load_image(path)
    exported = {name.partition("@")[0]: int(value, 16) for value, name in re.findall(
        r"^([0-9a-f]{16}) [TW] (\S+)", tool_output("nm", "-D", "--defined-only", str(path)), re.MULTILINE)}  # fmt: skip
    start, end = exported["__libc_start_main"], exported["exit"]
    code = tool_output(
        "objdump", "-d", "--no-show-raw-insn", f"--start-address={start - 256}", f"--stop-address={start}", str(path)
    )
    calls = re.findall(rf"^ *(\w+):\s+call +\*%rax\n *(\w+):\s+mov +%eax,%edi\n *\w+:\s+call +{end:x} ", code, re.MULTILINE)
    if len(calls) != 1:
        pytest.skip("this libc calls main in another way")
    places = np.array([int(calls[0][1], 16) - 1, start - 0x1000, end], np.uint64)
    unwinder = Unwinder(lambda _: image)
    found = unwinder.is_thread_entry(np.zeros(3, np.int32), image.file_offsets(places))
    assert found.tolist() == [True, False, False]


def test_random_stacks_always_end(program: Program) -> None:
    generator = np.random.default_rng(7)
    targets = np.array([program.at(name, k) for name in program.address for k in (0, 4, 15)] + [0, 1, 2**64 - 1], np.uint64)
    stacks = []
    for _ in range(300):
        words = np.where(
            generator.random(64) < 0.6,
            generator.choice(targets, 64),
            np.uint64(STACK) + generator.integers(-64, 600, 64).astype(np.uint64),
        )
        registers = {number: int(generator.choice(words)) for number in range(16) if number != RSP}
        stacks.append(Stack(int(generator.choice(targets)), words.tolist(), registers, size=int(generator.integers(0, 513))))
    result = program.unwind(*stacks)
    depth = np.diff(result.frame_start)
    assert np.all((depth >= 1) & (depth <= 127))
    assert set(result.end_reason.tolist()) >= {EndReason.THREAD_ENTRY, EndReason.DUMP_LIMIT, EndReason.UNMAPPED}
