"""The quality verdict: shares by hand, and every threshold from both sides."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from profiler.analysis.quality.arm_quality import QualityVerdict, judge
from profiler.analysis.quality.findings import Finding
from profiler.analysis.quality.run_quality import (
    DoubtfulFile,
    RunQuality,
    UnnamedDso,
    UnwindingEnd,
    own_executable,
    run_quality,
)
from profiler.model.capture import empty_capture
from profiler.model.costs import MissingSymbols
from profiler.model.dso import Dso, DsoKind
from profiler.model.quality import CaptureQuality
from profiler.model.run import PerfSettings, ProgramFacts
from profiler.model.sample_table import StackState
from profiler.model.symbols import NO_CAVEATS, FileCaveats
from support.attribution import attributed, rules
from support.profile_from_text import info_of, profile_from_text

RULES = rules("[[rule]]\ntransparent = true\ndso = '^\\[kernel\\]$'\nfunction = '^irq$|^timer$'\n")
GOOD = RunQuality(
    weight=1000,
    samples=500,
    by_state=(1000, 0, 0, 0, 0),
    unresolved=0,
    folded=0,
    own=800,
    own_with_debug=800,
    partial=0,
    heaviest_sample=2,
    unnamed=(),
)

DRAWN = """
weight  1            10             100                1000             10000         100000
state   ok           gap            rootless           truncated        none          ok
---
        main@m.c:1   main@m.c:1     main               main             [kernel]!idle  main@m.c:2
        work@m.c:9   libc.so!?      [kernel]!irq       libc.so!?        .              ?
        .            .              [kernel]!timer     libc.so!memmove  .              .
"""


def verdict(run: RunQuality = GOOD, recording: CaptureQuality | None = None) -> QualityVerdict:
    return judge([run], [recording or CaptureQuality(samples=run.samples)])


def codes(found: QualityVerdict) -> list[str]:
    return [warning.code for warning in found.warnings]


def test_sums_of_one_run() -> None:
    found = run_quality(attributed(profile_from_text(DRAWN).symbolized(), RULES))
    assert (found.weight, found.samples) == (111111, 6)
    by_state = dict(zip(StackState, found.by_state, strict=True))
    assert by_state == {
        StackState.COMPLETE: 100001,
        StackState.GAP_POSSIBLE: 10,
        StackState.ROOTLESS: 100,
        StackState.TRUNCATED: 1000,
        StackState.NO_USER_STACK: 10000,
    }
    assert found.unresolved == 100010
    assert found.folded == 100
    assert (found.own, found.own_with_debug) == (100001, 1)
    assert found.heaviest_sample == 100000
    reason = "stripped: no symbol table"
    assert set(found.unnamed) == {UnnamedDso("/bin/libc.so", "", reason, 1010), UnnamedDso("/bin/app", "", reason, 100000)}


def test_an_interrupt_in_kernel_code_is_not_folded_into_user_code() -> None:
    text = "main\n[kernel]!fault\n[kernel]!irq"
    assert run_quality(attributed(profile_from_text(text).symbolized(), RULES)).folded == 0


@pytest.mark.parametrize(
    ("program", "own"),
    [
        (ProgramFacts(path="/bin/libc.so"), 3),
        (ProgramFacts(path="/elsewhere/app"), 4),  # by the process's name, "app"
        (ProgramFacts(), 4),
    ],
)
def test_the_program_s_own_executable(program: ProgramFacts, own: int) -> None:
    drawn = profile_from_text("weight  4  3\n---\nmain  libc.so!memmove", info_of(program=program)).symbolized()
    assert run_quality(attributed(drawn, RULES)).own == own


@pytest.mark.parametrize(
    ("file", "comm"),
    [
        (b"/bin/app\xff", b"app\xff"),  # no UTF-8
        ("/bin/abcdefghijklmn\u00e4rest".encode(), b"abcdefghijklmn\xc3"),  # the kernel cuts after 15 bytes
    ],
)
def test_names_are_bytes(file: bytes, comm: bytes) -> None:
    path, process = file.decode("utf-8", "surrogateescape"), comm.decode("utf-8", "surrogateescape")
    capture = replace(empty_capture(info_of()), dsos=(Dso("/lib/libc.so", b"", DsoKind.FILE), Dso(path, b"", DsoKind.FILE)))
    assert own_executable(capture, process) == (1,)


def test_all_is_well() -> None:
    found = verdict()
    assert found.quality.status == "ok"
    assert found.warnings == ()
    assert found.missing == ()
    assert (found.quality.complete, found.quality.own_debug_share) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("changes", "status", "expected"),
    [
        ({"by_state": (980, 0, 0, 20, 0)}, "ok", []),
        ({"by_state": (979, 0, 0, 21, 0)}, "warn", ["truncated"]),
        ({"by_state": (799, 0, 0, 201, 0)}, "failed", ["truncated"]),
        ({"by_state": (950, 0, 50, 0, 0)}, "ok", []),
        ({"by_state": (949, 0, 51, 0, 0)}, "warn", ["rootless"]),
        ({"by_state": (499, 0, 501, 0, 0)}, "failed", ["rootless"]),
        ({"by_state": (0, 1000, 0, 0, 0)}, "ok", []),
        ({"by_state": (949, 0, 0, 0, 51)}, "warn", ["no-user-stack"]),
        ({"unresolved": 50}, "ok", []),
        ({"unresolved": 51}, "warn", ["unresolved"]),
        ({"unresolved": 201}, "failed", ["unresolved"]),
        ({"folded": 50}, "ok", []),
        ({"folded": 51}, "warn", ["interrupts"]),
        ({"partial": 201}, "warn", ["partial-names"]),
        ({"samples": 100, "heaviest_sample": 50}, "ok", []),
        ({"samples": 100, "heaviest_sample": 51}, "warn", ["heavy-sample"]),
        ({"samples": 99, "heaviest_sample": 51}, "warn", ["few-samples"]),
    ],
)
def test_thresholds(changes: dict[str, object], status: str, expected: list[str]) -> None:
    found = verdict(replace(GOOD, **changes))  # type: ignore[arg-type]
    assert found.quality.status == status
    assert codes(found) == expected
    assert all(warning.advice for warning in found.warnings)


CHANGED = datetime(2026, 1, 1, 12, 0, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("times", "is_newer"),
    [
        ({"started_at": "2026-01-01T12:00:00.500+00:00"}, True),
        ({"started_at": "2026-01-01T12:00:02.000+00:00"}, False),
        ({"source_changed_at": "2026-01-01T12:00:00+00:00"}, True),
        ({"source_changed_at": "2026-01-01T12:00:01.500000+00:00"}, False),
        ({}, False),
    ],
)
def test_a_file_changed_after_the_recording(times: dict[str, str], is_newer: bool) -> None:
    drawn = profile_from_text(
        "weight  30  40  5\n---\nmain  main  main\nlibc.so!memmove  libc.so!call  work\n.  work  .", info_of(**times)
    ).symbolized()
    caveats = FileCaveats("/bin/libc.so", int(CHANGED.timestamp()) * 10**9)
    outcomes = tuple(
        replace(each, caveats=caveats if drawn.capture.dsos[each.dso].path == "/bin/libc.so" else NO_CAVEATS)
        for each in drawn.outcomes
    )
    found = run_quality(attributed(replace(drawn, outcomes=outcomes), RULES))
    assert found.doubtful == (DoubtfulFile(caveats, is_newer, 70, 30),)


def test_unverified_names_are_a_warning_with_their_share_over_all_runs() -> None:
    def judged(*files: DoubtfulFile) -> QualityVerdict:
        return judge([replace(GOOD, doubtful=(file,)) for file in files], [])

    def doubtful(own: int, is_newer: bool = False) -> DoubtfulFile:
        return DoubtfulFile(FileCaveats("/bin/app", 1), is_newer, 1000, own)

    found = judged(doubtful(300), doubtful(100))
    assert (found.quality.status, codes(found)) == ("warn", ["unverified-names"])
    assert found.warnings[0].message == "build ID not recorded: names of /bin/app are not verified (20.0 % of the weight)"
    assert "--build-id" in found.warnings[0].advice
    assert codes(judged(doubtful(0), doubtful(1))) == []  # it only calls, and 1 of 2000 is too little
    found = judged(doubtful(0), doubtful(0, is_newer=True))
    assert "(100.0 % of the weight); the file was changed after the recording" in found.warnings[0].message
    assert codes(judge([replace(GOOD, weight=0, heaviest_sample=0, doubtful=(doubtful(0),))], [])) == []


def test_debug_information_that_is_not_read() -> None:
    entry = DoubtfulFile(FileCaveats(incomplete="/bin/app: debug information in .dwo files is not read"), False, 500, 0)
    found = judge([replace(GOOD, doubtful=(entry,)), GOOD], [])
    assert (found.quality.status, codes(found)) == ("warn", ["incomplete-debug-info"])
    assert found.warnings[0].message.startswith("/bin/app: debug information in .dwo files is not read: ")
    assert "25.0 % of the weight" in found.warnings[0].message


def test_where_unwinding_ended() -> None:
    text = """
weight  1            10             100                1000
state   rootless     rootless       rootless           ok
---
        main         libjit.so!a    libjit.so!b        main
        work         main           .                  work
        [kernel]!x   .              .                  .
"""
    found = run_quality(attributed(profile_from_text(text).symbolized(), RULES))
    assert set(found.rootless_in) == {UnwindingEnd("/bin/app", 1), UnwindingEnd("/bin/libjit.so", 110)}


def test_advice_for_rootless_stacks_depends_on_how_they_were_recorded() -> None:
    ends = tuple(UnwindingEnd(f"/lib/{name}", weight) for name, weight in (("a", 1), ("b", 40), ("c", 20), ("d", 10)))
    run = replace(GOOD, by_state=(900, 0, 100, 0, 0), rootless_in=ends)
    (pointers,) = judge([run], [], [PerfSettings(call_graph="fp")]).warnings
    assert pointers.advice == "build with frame pointers, or record with --call-graph dwarf"
    (dumps,) = judge([run], [], [PerfSettings(call_graph="dwarf")]).warnings
    assert dumps.advice.startswith("unwinding ended in /lib/b, /lib/c, /lib/d: ")
    assert "--call-graph" not in dumps.advice
    (mixed,) = judge([run], [], [PerfSettings(call_graph="dwarf"), PerfSettings(call_graph="fp")]).warnings
    assert mixed.advice == pointers.advice


@pytest.mark.parametrize(
    ("settings", "advice"),
    [
        ([PerfSettings(call_graph="dwarf", dump_bytes=8192)], "--call-graph dwarf,16384"),
        ([PerfSettings(call_graph="dwarf", dump_bytes=16384)], "--call-graph dwarf,32768"),
        ([PerfSettings(call_graph="dwarf", dump_bytes=32768)], "--call-graph dwarf,65528"),
        ([PerfSettings(call_graph="dwarf", dump_bytes=65528)], "record with --call-graph fp"),
        ([PerfSettings(call_graph="fp")], "kernel.perf_event_max_stack"),
        ([PerfSettings(call_graph="lbr")], "kernel.perf_event_max_stack"),
        ([PerfSettings(call_graph="dwarf")], "--max-stack 4096"),  # text: its header names no size
        ([], "--max-stack 4096"),
    ],
)
def test_advice_for_truncated_stacks_helps_as_they_were_recorded(settings: list[PerfSettings], advice: str) -> None:
    (found,) = judge([replace(GOOD, by_state=(700, 0, 0, 300, 0))], [], settings).warnings
    assert found.code == "truncated"
    assert advice in found.advice


def test_what_was_found_elsewhere_counts_too() -> None:
    found = judge([GOOD], [], (), [Finding("warn", "cpu-time-unseen", "message", "advice")])
    assert (found.quality.status, codes(found)) == ("warn", ["cpu-time-unseen"])


def test_one_lost_sample_fails_the_arm_and_is_counted() -> None:
    found = judge([GOOD, GOOD], [CaptureQuality(lost_samples=3), CaptureQuality(lost_samples=4)])
    assert found.quality.status == "failed"
    assert found.quality.lost_samples == 7
    assert found.warnings[0].message == "7 samples were lost while recording (1000 were kept)"


def test_throttled_and_unfinished_recordings() -> None:
    found = verdict(recording=CaptureQuality(throttled=2, is_unfinished=True))
    assert codes(found) == ["throttled", "unfinished"]
    assert found.quality.status == "warn"


def test_missing_symbols_are_merged_over_runs_heaviest_first() -> None:
    def unnamed(path: str, weight: int) -> UnnamedDso:
        return UnnamedDso(path, "ab12", "stripped", weight)

    one = replace(GOOD, unnamed=(unnamed("/b", 100), unnamed("/a", 50), unnamed("/tiny", 1)))
    two = replace(GOOD, unnamed=(unnamed("/a", 60),))
    found = judge([one, two], [])
    assert found.missing == (MissingSymbols("/a", "ab12", 0.055, "stripped"), MissingSymbols("/b", "ab12", 0.05, "stripped"))


def test_an_arm_that_was_not_profiled_has_no_bad_stacks() -> None:
    found = judge([], [])
    assert found.quality.status == "ok"
    assert codes(found) == []


def test_an_arm_without_samples() -> None:
    nothing = replace(GOOD, weight=0, samples=0, by_state=(0, 0, 0, 0, 0), own=0, own_with_debug=0, heaviest_sample=0)
    found = judge([nothing], [CaptureQuality()])
    assert found.quality.status == "warn"
    assert codes(found) == ["few-samples"]
    assert found.quality.own_debug_share == -1.0
    assert found.quality.complete == 0.0
