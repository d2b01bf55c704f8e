"""Whole texts of perf script: what becomes of samples, weights, stacks and what cannot be read."""

from __future__ import annotations

import io
from collections import Counter

import pytest

from collectors.importers.perf_script.reader import is_perf_script, read_perf_script
from profiler.errors import FormatError
from profiler.model.capture import Capture
from profiler.model.dso import DsoKind
from profiler.model.frame_table import CpuMode
from profiler.model.run import CaptureInfo, RunIdentity, RunMode
from profiler.model.sample_table import StackState

INFO = CaptureInfo(RunIdentity("file", "x", 0, RunMode.IMPORTED))
ONE = (
    "a b 12   100 [001] 5.000001:       1000 cpu-clock: \n"
    "\t  401 leaf+0x1 (/x/prog)\n\t  501 main (/x/prog)\n\t 601 _start (/x/prog)\n"
)
TWO = (
    "k/2:1 101/102   5.000003:       3000 cpu-clock: \n"
    "\tffffffff82233a72 __schedule ([kernel.kallsyms])\n\t  501 main (/x/prog)\n"
)


def read(text: str | bytes) -> Capture:
    data = text.encode() if isinstance(text, str) else text
    return read_perf_script(io.BytesIO(data), "text", INFO)


def stacks(capture: Capture) -> Counter[tuple[str, ...]]:
    """Weight by names of stacks, outermost first; a frame without a name is its DSO's in brackets."""
    found: Counter[tuple[str, ...]] = Counter()
    for stack, weight in zip(capture.samples.stack.tolist(), capture.samples.weight.tolist(), strict=True):
        names = []
        for frame in capture.stacks.frames_leaf_first(stack):
            symbol = int(capture.frames.symbol[frame])
            names.append(capture.strings[symbol] if symbol >= 0 else f"<{capture.dsos[capture.frames.dso[frame]].name}>")
        found[tuple(reversed(names))] += weight
    return found


def threads(capture: Capture) -> list[tuple[int, int, str]]:
    table = capture.threads
    names = [capture.strings[name] for name in table.thread_name.tolist()]
    rows = list(zip(table.pid.tolist(), table.tid.tolist(), names, strict=True))
    return [rows[row] for row in capture.samples.thread.tolist()]


BOTH = {("_start", "main", "leaf"): 1000, ("main", "__schedule"): 3000}


@pytest.mark.parametrize(
    "text",
    [
        ONE + "\n" + TWO + "\n",
        ONE + "\n" + TWO.rstrip("\n"),
        ONE + TWO,
        "\n\n# comment\n" + ONE + "\n\n\n" + TWO,
        (ONE + "\n" + TWO).replace("\n", "\r\n"),
        (ONE + "\n" + TWO).replace("\t", "        "),
        (ONE + "\n" + TWO).replace(": \n", ": \n\n"),
    ],
    ids=["as printed", "no last line end", "no blank lines", "comments", "CRLF", "blanks for tabs", "blank below header"],
)
def test_every_sample_counts(text: str) -> None:
    capture = read(text)
    assert stacks(capture) == BOTH
    assert threads(capture) == [(100, 100, "a b 12"), (101, 102, "k/2:1")]
    assert capture.samples.time_ns.tolist() == [5_000001000, 5_000003000]
    assert capture.samples.cpu.tolist() == [1, -1]
    assert [(event.name, event.unit) for event in capture.events] == [("cpu-clock", "ns")]
    assert capture.quality.notes == ()


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_encodings(encoding: str) -> None:
    data = (ONE + "\n" + TWO).encode(encoding)
    assert is_perf_script(data)
    assert stacks(read(data)) == BOTH


def test_bytes_that_are_no_text_are_kept_in_names() -> None:
    capture = read(ONE.replace("a b 12", "\udc80 \udcfe").encode("utf-8", "surrogateescape"))
    assert threads(capture) == [(100, 100, "\udc80 \udcfe")]


def test_blocks_of_a_long_text_are_joined() -> None:
    capture = read((ONE + "\n" + TWO + "\n") * 20000)
    assert stacks(capture) == {stack: 20000 * weight for stack, weight in BOTH.items()}
    assert len(capture.stacks) == 5
    assert not (capture.stacks.prefix >= range(5)).any()


def test_a_process_has_the_name_of_its_first_thread_at_the_time() -> None:
    lines = [
        ("old", 7, 7, 2),
        ("worker", 7, 8, 1),
        ("worker", 7, 8, 3),
        ("new", 7, 7, 4),
        ("worker", 7, 8, 5),
        ("alone", 9, 10, 6),
    ]
    capture = read("".join(f"{name} {pid}/{tid} {time}.0: 1 cycles: \n\t 1 main (/x)\n\n" for name, pid, tid, time in lines))
    names = [capture.strings[row] for row in capture.threads.process_name[capture.samples.thread].tolist()]
    assert names == ["old", "old", "old", "new", "new", "alone"]


def test_samples_are_ordered_by_time() -> None:
    assert threads(read(TWO.replace("5.000003", "9.000001") + "\n" + ONE)) == [(100, 100, "a b 12"), (101, 102, "k/2:1")]


def test_without_a_period_each_sample_counts_one_and_the_unit_is_no_time() -> None:
    capture = read((ONE + "\n" + TWO).replace("      1000 ", "").replace("      3000 ", ""))
    assert capture.samples.weight.tolist() == [1, 1]
    assert [(event.name, event.unit) for event in capture.events] == [("cpu-clock", "samples")]


def test_periods_on_some_samples_only_are_left_out() -> None:
    capture = read((ONE + "\n" + TWO).replace("      3000 ", ""))
    assert capture.samples.weight.tolist() == [1, 1]
    assert [event.unit for event in capture.events] == ["samples"]
    assert capture.quality.notes == ("cpu-clock: only 1 of 2 samples are printed with a period; each counts the same",)


def test_events_are_profiles_of_their_own() -> None:
    capture = read(ONE + "\n" + TWO.replace("cpu-clock", "page-faults:u"))
    assert [(event.name, event.unit) for event in capture.events] == [("cpu-clock", "ns"), ("page-faults:u", "page-faults")]
    assert capture.samples.event.tolist() == [0, 1]


def test_frames_have_their_files_and_kinds() -> None:
    frames = (
        "ffffffff82233a72 __schedule ([kernel.kallsyms])",
        "ffffffffc0000001 ext4_x ([ext4])",
        "ffffffffc0000002 mlx (/lib/modules/5.4/kernel/net/mlx5-core.ko.xz)",
        "414b3b fsnotify (/lib/modules/4.1.0/build/vmlinux)",
        "7f1 gettime ([vdso])",
        "7f2 LBusy;::main (/tmp/perf-99.map)",
        "7f3 [unknown] (/x/my dir (x)/prog (deleted))",
        "7f4 main (/x/prog (deleted))",
        "7f5 [unknown] ([unknown])",
        "7f6 [unknown] (//anon)",
        "7f7 thing (memfd:jit (deleted))",
    )
    capture = read("x 1 1.0: 1 cycles: \n" + "".join(f"\t{frame}\n" for frame in frames))
    table, found = capture.frames, []
    for row in capture.stacks.frames_leaf_first(int(capture.samples.stack[0])):
        dso = capture.dsos[table.dso[row]]
        found.append((dso.path, dso.kind, table.mode[row] == CpuMode.KERNEL, bool(table.is_return_address[row])))
    assert found == [
        ("[kernel]", DsoKind.KERNEL, True, False),
        ("[ext4]", DsoKind.MODULE, True, True),
        ("[mlx5_core]", DsoKind.MODULE, True, True),
        ("[kernel]", DsoKind.KERNEL, True, True),
        ("[vdso]", DsoKind.VDSO, False, False),
        ("//anon", DsoKind.ANONYMOUS, False, True),
        ("/x/my dir (x)/prog", DsoKind.UNKNOWN, False, True),
        ("/x/prog", DsoKind.FILE, False, True),
        ("[unknown]", DsoKind.UNKNOWN, False, True),
        ("//anon", DsoKind.ANONYMOUS, False, True),
        ("memfd:jit", DsoKind.FILE, False, True),
    ]


def test_mangled_names_are_shown_readable() -> None:
    capture = read("x 1 1.0: 1 cycles: \n\t 1 _ZN3foo3barEv+0x4 (/x/prog)\n\t 2 _RNvC5crate4main (/x/prog)\n")
    assert list(stacks(capture)) == [("crate::main", "foo::bar()")]


def test_inlined_frames_lie_in_the_function_that_holds_them() -> None:
    text = (
        "x 1 1.0: 1 cycles: \n\t 1291 a+0xa (inlined)\n\t 1291 b+0xa (inlined)\n\t 1291 c+0xa (/x/prog)\n"
        "\t 1300 d (inlined)\n\t 1400 e (/x/other)\n"
    )
    capture = read(text)
    assert list(stacks(capture)) == [("e", "d", "c", "b", "a")]
    frames = capture.stacks.frames_leaf_first(int(capture.samples.stack[0]))
    assert [capture.dsos[capture.frames.dso[frame]].path for frame in frames] == ["/x/prog"] * 3 + ["[unknown]", "/x/other"]
    assert capture.frames.is_return_address[frames].tolist() == [False, False, False, True, True]


def test_source_lines_are_passed_over_and_mark_inlined_frames() -> None:
    text = (
        "x 1 1.0: 1 cycles: \n\t 1291 a+0xa\n  a.h:5 (inlined)\n\t 1291 c+0xa (/x/prog)\n  c.c:12\n"
        "\t 1400 e (/x/my dir)\n  ??:0\n"
    )
    capture = read(text)
    assert list(stacks(capture)) == [("e", "c", "a")]
    assert {capture.dsos[row].path for row in capture.frames.dso.tolist()} == {"/x/prog", "/x/my dir"}
    assert capture.quality.notes == ()


def test_how_complete_stacks_are() -> None:
    capture = read(ONE + "\n" + TWO + "\nx 1 6.0: 1 cpu-clock: \n\tffffffff82233a72 __schedule ([kernel.kallsyms])\n")
    assert capture.samples.state.tolist() == [StackState.GAP_POSSIBLE, StackState.ROOTLESS, StackState.NO_USER_STACK]
    dwarf = read("# cmdline : /usr/bin/perf record --call-graph dwarf,8192 -- ./prog 1\n" + ONE)
    assert dwarf.samples.state.tolist() == [StackState.COMPLETE]
    assert (dwarf.info.perf.call_graph, dwarf.info.command) == ("dwarf", ("./prog", "1"))


def test_samples_without_call_stacks_have_one_frame() -> None:
    text = (
        "             a x 20638   531.302309:    1001001 cpu-clock:ppp:  ffffffff81bdc7a7 __list_del+0x47 ([kernel.kallsyms])\n"
        "      a b [c] 12 20638   531.303307:    1001001 cpu-clock:ppp:      561ed8746281 F::operator()+0x21 (/tmp/a x)\n"
    )
    capture = read(text)
    assert stacks(capture) == {("__list_del",): 1001001, ("F::operator()",): 1001001}
    assert threads(capture) == [(20638, 20638, "a x"), (20638, 20638, "a b [c] 12")]
    assert capture.quality.notes == ("recorded without call stacks; use --call-graph",)


def test_headers_only_count_too() -> None:
    capture = read("x 1 1.0: cycles: \ny 2 2.0: cycles: \n")
    assert stacks(capture) == {("<[unknown]>",): 2}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("\n\tffffffff82233a72 mas_walk\n\t 12 main\n\n\n\t 13 main\n\n", [(-1, -1, "")] * 2),
        (
            "a x \n\tffffffff82233a72 mas_walk ([kernel.kallsyms])\n\t 12 main (/x)\n\na x \n\t 13 main (/x)\n",
            [(-1, -1, "a x")] * 2,
        ),
    ],
)
def test_stacks_without_numbers(text: str, names: list[tuple[int, int, str]]) -> None:
    assert is_perf_script(text.encode())
    capture = read(text)
    assert stacks(capture) == {("main", "mas_walk"): 1, ("main",): 1}
    assert threads(capture) == names
    assert [note for note in capture.quality.notes if "could not be read" in note] == []


def test_facts_of_the_header() -> None:
    header = (
        "# ========\n# captured on    : Tue Dec  1 02:16:26 2026\n# hostname : vm\n# os release : 6.18.44\n"
        "# perf version : 6.1.187\n# arch : x86_64\n# nrcpus online : 2\n# cpudesc : AMD EPYC\n"
        "# cmdline : /usr/bin/perf record -F 999 -g ./a x\n# ========\n#\n"
    )
    info = read(header + ONE).info
    assert (info.host.hostname, info.host.kernel, info.host.architecture, info.host.cpu, info.host.cpu_count) == (
        "vm", "6.18.44", "x86_64", "AMD EPYC", 2
    )  # fmt: skip
    assert (info.perf.event, info.perf.call_graph, info.perf.perf_version) == ("cpu-clock", "fp", "6.1.187")
    empty = read(header)
    assert empty.quality.notes == ("no samples in the text; the program may have ended before the first",)


def test_lines_that_cannot_be_read_are_counted_and_told_once() -> None:
    capture = read("[ perf record: Woken up 1 times ]\n" + ONE + "\t  WEIRD LINE\n\nnonsense here\n" + TWO)
    assert stacks(capture) == BOTH
    assert capture.quality.notes == (
        "3 lines could not be read as perf script text, the first: '[ perf record: Woken up 1 times ]'",
    )


@pytest.mark.parametrize(
    "text", [b"", b"\n\n", b"hello world\nthis is prose 12 of x\n", b"\x7fELF\0\0\0", b"a;b;c 12\n", b"x" * (3 << 20)]
)
def test_other_text_is_refused_in_one_line(text: bytes) -> None:
    assert not is_perf_script(text[:8192])
    with pytest.raises(FormatError, match=r"^text: no line begins a sample as perf script prints it .* perf script > FILE$"):
        read(text)


def test_periods_too_large_for_sums_are_refused() -> None:
    with pytest.raises(FormatError, match="too large"):
        read(ONE.replace("      1000", "9" * 20))


def test_too_many_event_names_are_refused() -> None:
    with pytest.raises(FormatError, match="32768 event names"):
        read("".join(f"x 1 1.0: 1 e{number}: \n" for number in range(32768)))


def test_a_stack_without_end_is_cut() -> None:
    capture = read("x 1 1.0: 1 cycles: \n" + "".join(f"\t {number:x} f{number % 7} (/x/prog)\n" for number in range(70000)))
    assert len(capture.stacks) == 65536
    assert capture.samples.state.tolist() == [StackState.TRUNCATED]
