"""Header lines as perf's format strings make them (builtin-script.c): comm "%16s " or "%s ", thread "%5d " or "%5d/%-5d ",
cpu "[%03d] ", time "%5lu.%06lu: ", period "%10lu ", event "%s: "."""

from __future__ import annotations

import itertools

import pytest

from collectors.importers.perf_script.sample_header import (
    SampleHeader,
    is_other_record,
    parse_timed_header,
    parse_untimed_header,
)

COMMS = (
    "program",
    "a b [c] 12",
    "Web 33 (x)",
    "[ET_NET 0]",
    "k/2:1",
    ":7: /9",
    "12 [003]",
    "1.5: 3 x",
    "dead",
    "",
    "a;b 3",
    "ü",
)


def printed(comm: str, numbers: str, cpu: str, time: str, period: str) -> str:
    return f"{comm} {numbers} {cpu}{time}{period}cycles:u: "


@pytest.mark.parametrize("comm", COMMS)
@pytest.mark.parametrize("is_aligned", [False, True])
def test_every_choice_of_fields_keeps_the_comm(comm: str, is_aligned: bool) -> None:
    numbers = {f"{7:5d}": (7, 7), f"{123456:5d}": (123456, 123456), f"{7:5d}/{-1:<5d}": (7, -1), f"{31:5d}/{32:<5d}": (31, 32)}
    times = {f"{5:5d}.{70:06d}: ": 5_000_070_000, f"{203265:5d}.{377019123:09d}: ": 203265_377019123}
    choices = itertools.product(numbers.items(), ("", "[002] ", "[000] "), times.items(), ("", f"{1001001:10d} ", f"{0:10d} "))
    for (number, (pid, tid)), cpu, (time, time_ns), period in choices:
        shown = f"{comm:>16s}" if is_aligned else comm
        header = parse_timed_header(printed(shown, number, cpu, time, period))
        expected = (comm, pid, tid, int(cpu[1:4]) if cpu else -1, time_ns, int(period or -1), "cycles:u")
        assert header is not None
        assert header[:7] == expected, printed(shown, number, cpu, time, period)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("java 19983 cycles:", ("java", 19983, 19983, -1, -1, -1, "cycles")),
        ("node-v011 31912 cpu-clock: ", ("node-v011", 31912, 31912, -1, -1, -1, "cpu-clock")),
        ("a x 20624    1001001 cpu-clock:ppp: ", ("a x", 20624, 20624, -1, -1, 1001001, "cpu-clock:ppp")),
        ("java 33 20624 [001] cycles:", ("java 33", 20624, 20624, 1, -1, -1, "cycles")),
    ],
)
def test_lines_without_a_time(line: str, expected: tuple[object, ...]) -> None:
    header = parse_untimed_header(line)
    assert header is not None
    assert header[:7] == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("825432/825432 339457.445933440:       1 cycles:u: ", ("", 825432, 825432, -1, 339457_445933440, 1, "cycles:u")),
        ("  528.970022: cpu-clock:ppp: ", ("", -1, -1, -1, 528_970022000, -1, "cpu-clock:ppp")),
        ("a x 20624/20624 K       528.970022430:    1001001 cpu-clock:ppp: ", ("a x", 20624, 20624, -1, 528_970022430, 1001001,
                                                                               "cpu-clock:ppp")),
        ("comm\t0/0\t\t[000] 0.0:\t\t\t1 event_name: event_properties", ("comm", 0, 0, 0, 0, 1, "event_name")),
        ("one two three four five six 7\t0/0\t[000] 0.0:\t1 e: x", ("one two three four five six 7", 0, 0, 0, 0, 1, "e")),
        ("x 1 [0] 1.5: event/call-graph=no/: y", ("x", 1, 1, 0, 1_500000000, -1, "event/call-graph=no/")),
        ("x 1 [0] 1.5: sched:sched_switch: prev_comm=a prev_pid=2 ==> next_comm=c 4 next_pid=5", ("x", 1, 1, 0, 1_500000000, -1,
                                                                                                   "sched:sched_switch")),
        ("x 1 [0] 1.5: ", ("x", 1, 1, 0, 1_500000000, -1, "")),
    ],
)  # fmt: skip
def test_other_layouts(line: str, expected: tuple[object, ...]) -> None:
    header = parse_timed_header(line)
    assert header is not None
    assert header[:7] == expected


def test_a_tracepoints_fields_follow_the_event() -> None:
    header = parse_timed_header(
        "fio 2/3 [021] 1.791544:          1    block:block_rq_issue: 259,76 R 4096 () 57622160 + 8 [fio]"
    )
    assert header == SampleHeader(
        "fio", 2, 3, 21, 1_791544000, 1, "block:block_rq_issue", " 259,76 R 4096 () 57622160 + 8 [fio]"
    )


def test_other_records_are_no_samples() -> None:
    line = "a x 20624   528.969051: PERF_RECORD_MMAP2 20624/20624: [0x562f278e9000(0x1000) @ 0x1000 fe:00 9 8]: r-xp /tmp/a x"
    assert parse_timed_header(line) is None
    assert is_other_record(line)


@pytest.mark.parametrize(
    "line",
    ["\t  401b97 main+0x1f (/tmp/x)", "Error: something failed", "", "main.c:12", "[ perf record: Woken up 1 times ]",
     " 99999999999 1.5 x", "Lost 12 events"],
)  # fmt: skip
def test_other_text_is_no_header(line: str) -> None:
    assert parse_timed_header(line) is None
    assert parse_untimed_header(line) is None


def test_numbers_too_large_for_the_kernel_are_unknown() -> None:
    header = parse_timed_header("x 9999999999/12 [99999] 99999999999999999999.5: 5 cycles: ")
    assert header is not None
    assert (header.pid, header.tid, header.cpu, header.time_ns) == (-1, 12, -1, 2**64 - 1)
