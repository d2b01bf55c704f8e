"""Lines of printed call stacks."""

from __future__ import annotations

import pytest

from collectors.importers.perf_script.frame_line import FrameText, SourceLine, parse_frame, parse_place, split_dso


@pytest.mark.parametrize(
    ("line", "address", "symbol", "dso"),
    [
        ("\t  401b97 main+0x1f (./tests/inline counter)", 0x401B97, "main", "./tests/inline counter"),
        ("\tffffffff82233a72 __schedule ([kernel.kallsyms])", 0xFFFFFFFF82233A72, "__schedule", "[kernel.kallsyms]"),
        (" 606258d4c544155 [unknown] ([unknown])", 0x606258D4C544155, "", "[unknown]"),
        ("ffffffff8103d0ca native_write_msr_safe ([kernel.kallsyms])", 0xFFFFFFFF8103D0CA, "native_write_msr_safe",
         "[kernel.kallsyms]"),
        ("\t 1273 F::operator()+0x13 (/tmp/my dir (x)/prog)", 0x1273, "F::operator()", "/tmp/my dir (x)/prog"),
        ("\t 1273 std::function<void (int)>::operator()(int) const (/tmp/prog (deleted))", 0x1273,
         "std::function<void (int)>::operator()(int) const", "/tmp/prog (deleted)"),
        ("\t 1273 operator new(unsigned long) (/lib/libstdc++.so.6)", 0x1273, "operator new(unsigned long)",
         "/lib/libstdc++.so.6"),
        ("\t c6d7895aac9 LazyCompile:~body_0 evalmachine.<anonymous>:1 (/tmp/perf-31912.map)", 0xC6D7895AAC9,
         "LazyCompile:~body_0 evalmachine.<anonymous>:1", "/tmp/perf-31912.map"),
        ("\t 7f Ljava/io/PrintStream;::print (/tmp/perf-1.map)", 0x7F, "Ljava/io/PrintStream;::print", "/tmp/perf-1.map"),
        ("\t 538b82 text/template.init.ializers+0x872 (/usr/lib/go/bin/go)", 0x538B82, "text/template.init.ializers",
         "/usr/lib/go/bin/go"),
        ("\t abc <alloc::boxed::Box<T> as gc::trace::Trace>::trace+0x20 (/target/boa_cli)", 0xABC,
         "<alloc::boxed::Box<T> as gc::trace::Trace>::trace", "/target/boa_cli"),
        ("\tffffffff82233a72 mas_walk", 0xFFFFFFFF82233A72, "mas_walk", ""),
        ("\t 12 foo(int, char**)", 0x12, "foo(int, char**)", ""),
        ("\t  401136", 0x401136, "", ""),
        ("\tmain (/tmp/x)", -1, "main", "/tmp/x"),
    ],
)  # fmt: skip
def test_frames(line: str, address: int, symbol: str, dso: str) -> None:
    assert parse_frame(line) == FrameText(address, symbol, dso, is_inlined=False)


def test_an_inlined_frame_is_marked() -> None:
    assert parse_frame("\t 1291 std::__invoke_impl<void, F&, int>+0xa (inlined)") == FrameText(
        0x1291, "std::__invoke_impl<void, F&, int>", "", is_inlined=True
    )


@pytest.mark.parametrize(
    "line", ["  a.cpp:5", "  ??:0", "  [kernel.kallsyms][ffffffff82233a72]", "  my dir/a.c:12 (discriminator 3)"]
)
def test_source_lines(line: str) -> None:
    assert parse_frame(line) == SourceLine(is_inlined=False)


def test_the_source_line_of_an_inlined_frame_says_so() -> None:
    assert parse_frame("  do-rel.h:83 (inlined)") == SourceLine(is_inlined=True)


@pytest.mark.parametrize("line", ["          THIS_IS_A_WEIRD_LINE", "\t", "", "  words and more words"])
def test_other_lines(line: str) -> None:
    assert parse_frame(line) is None


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        ("  ffffffff81bdc7a7 __list_del+0x47 ([kernel.kallsyms])",
         FrameText(0xFFFFFFFF81BDC7A7, "__list_del", "[kernel.kallsyms]", False)),
        ("      561ed8746281 F::operator()+0x21 (/tmp/a x)", FrameText(0x561ED8746281, "F::operator()", "/tmp/a x", False)),
        (" 259,76 R 4096 () 57622160 + 8 [fio] ffffffff8beead90 blk_mq_start_request ([kernel.kallsyms])",
         FrameText(0xFFFFFFFF8BEEAD90, "blk_mq_start_request", "[kernel.kallsyms]", False)),
        (" vec=1 [action=TIMER]     561ed8746281 dead beef (/tmp/x)", FrameText(0x561ED8746281, "dead beef", "/tmp/x", False)),
        (" prev_comm=swapper prev_pid=0 ==> next_comm=a next_pid=1", None),
        ("", None),
    ],
)  # fmt: skip
def test_places_on_the_header_line(rest: str, expected: FrameText | None) -> None:
    assert parse_place(rest) == expected


def test_parentheses_that_do_not_balance() -> None:
    assert split_dso("main (/tmp/a)b/prog)") == ("main", "/tmp/a)b/prog")
    assert split_dso("foo(int)") == ("foo(int)", "")
    assert split_dso("x)") == ("x)", "")
