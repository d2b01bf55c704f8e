"""py-spy's raw text and speedscope files.  The texts have the form that py-spy 0.4.3 wrote of a program with two threads and a
child; the counts in them are the expected figures."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from collectors.importers.folded import is_folded
from collectors.importers.pyspy_raw import is_pyspy_raw, read_pyspy_raw
from collectors.importers.pyspy_speedscope import is_speedscope, read_pyspy_speedscope
from collectors.importers.pyspy_tables import process_name
from profiler.analysis.attribution.apply_symbols import apply_symbols
from profiler.cli.main import main
from profiler.codec.container import decode, encode
from profiler.errors import FormatError
from profiler.model.capture import Capture
from profiler.model.run import CaptureInfo, RunIdentity, RunMode
from profiler.model.sample_table import StackState

INFO = CaptureInfo(RunIdentity("file", "x", 0, RunMode.IMPORTED))
MAIN = 'process 71:"/v/bin/python prog.py"'
CHILD = 'process 72:"/v/bin/python /srv/prog.py child --token=s3cret"'
RAW = f"""{MAIN};thread (71): MainThread;<module> (prog.py:31);work (prog.py:25);one (prog.py:17) 5
{MAIN};thread (75): worker;Thread.run (threading.py:982);work (prog.py:24);three (prog.py:11) 7
{MAIN};{CHILD};thread (72): MainThread;<module> (prog.py:34);work (prog.py:24);three (prog.py:9) 57
{MAIN};thread (75): a;b 7;Thread.run (threading.py:982);work (prog.py:24);three (prog.py:11) 2
"""
Sample = tuple[str, str, tuple[str, ...]]


def raw(text: str) -> Capture:
    return read_pyspy_raw(io.BytesIO(text.encode("utf-8", "surrogateescape")), "raw", INFO)


def speedscope(document: Any) -> Capture:
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    return read_pyspy_speedscope(io.BytesIO(data), "file", INFO)


def counted(capture: Capture) -> Counter[Sample]:
    """Samples by (process, thread, "function:line" from the outside in)."""
    found: Counter[Sample] = Counter()
    threads = capture.threads
    for thread, stack, weight in zip(
        capture.samples.thread.tolist(), capture.samples.stack.tolist(), capture.samples.weight.tolist(), strict=True
    ):
        rows = list(reversed(capture.stacks.frames_leaf_first(stack)))
        frames = tuple(f"{capture.strings[capture.frames.symbol[row]]}:{capture.frames.offset[row]}" for row in rows)
        process = f"{threads.pid[thread]} {capture.strings[threads.process_name[thread]]}"
        found[process, f"{threads.tid[thread]} {capture.strings[threads.thread_name[thread]]}", frames] += weight
    return found


def places(capture: Capture) -> set[tuple[str, str, int]]:
    symbolized = apply_symbols(capture, {})
    chains = symbolized.chains
    return {
        (symbolized.functions[function].key, symbolized.files[file], line)
        for function, file, line in zip(chains.function.tolist(), chains.file.tolist(), chains.line.tolist(), strict=True)
    }


def test_raw_text_keeps_processes_threads_and_lines() -> None:
    assert is_pyspy_raw(RAW.encode())
    capture = raw(RAW)
    three = ("Thread.run (threading.py):982", "work (prog.py):24", "three (prog.py):11")
    assert counted(capture) == {
        ("71 python prog.py", "71 MainThread", ("<module> (prog.py):31", "work (prog.py):25", "one (prog.py):17")): 5,
        ("71 python prog.py", "75 worker", three): 7,
        ("72 python prog.py", "72 MainThread", ("<module> (prog.py):34", "work (prog.py):24", "three (prog.py):9")): 57,
        ("71 python prog.py", "75 a;b 7", three): 2,
    }
    assert [(event.name, event.unit) for event in capture.events] == [("py-spy", "samples of non-idle wall time")]
    assert capture.quality.samples == capture.quality.complete == len(capture.samples) == 71
    assert {("one (prog.py)", "prog.py", 17), ("<module> (prog.py)", "prog.py", 31)} <= places(capture)
    assert len({place for place in places(capture) if place[0] == "three (prog.py)"}) == 2


def test_arguments_of_command_lines_are_not_kept() -> None:
    assert b"s3cret" not in encode(raw(RAW))
    assert process_name("/usr/bin/python3 -m relay.main --key x") == "python3 -m relay.main"
    assert process_name("python -c print('secret')") == "python"
    assert process_name("") == ""


@pytest.mark.parametrize(
    "head", ["main;f 3\nmain;g 4\n", "main;read (libc.so.6) 3\n", "a (x.c:3);b (x.c:4) 5\n", "hello\n", ""]
)
def test_other_folded_text_is_not_taken_for_it(head: str) -> None:
    assert not is_pyspy_raw(head.encode())
    assert is_pyspy_raw(b"<module> (prog.py:31);work (prog.py:25) 4\n")
    assert is_pyspy_raw(RAW.encode())
    assert is_folded(RAW.encode()), "which is why it is asked for first"


def test_native_frames() -> None:
    text = "thread (9): w;0x7f0b6cf278ec (libc.so.6);thread_run (libpython3.11.so.1.0);work (prog.py:24);wait (x.c:7) 4\n"
    capture = raw(text)
    assert set(capture.samples.state.tolist()) == {StackState.GAP_POSSIBLE}
    by_dso = {
        capture.dsos[dso].path: symbol >= 0 for dso, symbol in zip(capture.frames.dso, capture.frames.symbol, strict=True)
    }
    assert by_dso == {"libc.so.6": False, "libpython3.11.so.1.0": True, "prog.py": True, "x.c": True}
    assert ("wait (x.c)", "x.c", 7) in places(raw("work (prog.py:24);wait (x.c:7) 4\n"))


def test_lines_that_are_no_stacks_are_counted_and_told() -> None:
    capture = raw(RAW + "no weight\nno frame 5\nthread (1): x 5\n")
    assert capture.quality.samples == 71 + 5, "a thread that just begins has no frames yet"
    assert "2 lines could not be read as stacks of py-spy's" in capture.quality.notes
    with pytest.raises(FormatError, match="no line is a stack"):
        raw("x 5\n")


def test_hostile_raw_text() -> None:
    text = (
        'process 99999999999999999999:"x";thread (4294967296): \x1b[31m;f (a.py:1) 1\n'
        "thread (0xDEADBEEFDEADBEEF): py;f (a.py:1) 1\n"
        'process 5:"sh -c a;b (c.py:9);d";thread (5): t;f (a.py:1) 1\n'
        "f (a.py:999999999);g (x (y).py:2);(z.py:1) 1\n"
        "\udcff\udcfe (\udcfd.py:1) 1\n"
    )
    capture = raw(text)
    assert capture.quality.samples == 5
    assert set(capture.threads.pid.tolist()) == {-1, 5}
    assert set(capture.threads.tid.tolist()) == {-1, 5}
    assert encode(decode(encode(capture), "x")) == encode(capture)
    with pytest.raises(FormatError, match="too large"):
        raw("f (a.py:1) 999999999999999999\n" * 9)
    many = raw("f (a.py:1) 99999999999\nf (a.py:2) 1\n")
    assert many.samples.weight.tolist() == [99999999999, 1]
    assert any("too many samples" in note for note in many.quality.notes)


def frame(name: str, file: str = "/srv/prog.py", line: int | None = 1) -> dict[str, Any]:
    return {"name": name, "file": file, "line": line, "col": None}


def document(frames: Sequence[dict[str, Any]], profiles: dict[str, list[list[int]]], period_s: float = 0.02) -> dict[str, Any]:
    return {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "profiles": [
            {
                "type": "sampled",
                "name": name,
                "unit": "seconds",
                "startValue": 0.0,
                "endValue": period_s * len(samples),
                "samples": samples,
                "weights": [period_s] * len(samples),
            }
            for name, samples in profiles.items()
        ],
        "shared": {"frames": list(frames)},
        "activeProfileIndex": None,
        "exporter": "py-spy@0.4.3",
        "name": "py-spy profile",
    }


LABELS = [frame(MAIN, "", 0), frame("thread (71): MainThread", "", 0)]
FRAMES = [*LABELS, frame("<module>", line=31), frame("three", line=9), frame("read", "/lib/libc.so.6", 0)]
PROFILES = {
    'Process 71 Thread 71 "MainThread"': [[0, 1, 2, 3]] * 3 + [[0, 1, 2]],
    'Process 71 Thread 75 "a;b\n7"': [[2, 3, 4]],
    'Thread 0x7F00 "unknown"': [[2]],
}


def test_speedscope_file() -> None:
    text = json.dumps(document(FRAMES, PROFILES))
    assert is_speedscope(text.encode())
    capture = speedscope(document(FRAMES, PROFILES))
    module = "<module> (prog.py):31"
    assert counted(capture) == {
        ("71 python prog.py", "71 MainThread", (module, "three (prog.py):9")): 3,
        ("71 python prog.py", "71 MainThread", (module,)): 1,
        ("71 python prog.py", "75 a;b\n7", (module, "three (prog.py):9", "read:0")): 1,
        ("-1 python", "-1 unknown", (module,)): 1,
    }
    assert capture.events[0].frequency_hz == capture.info.perf.frequency_hz == 50
    assert ("three (prog.py)", "/srv/prog.py", 9) in places(capture)
    assert (capture.quality.complete, capture.quality.gap_possible) == (5, 1)


def test_a_thread_whose_name_was_not_always_found_is_one() -> None:
    profiles = {"Process 71 Thread 75": [[2]], 'Process 71 Thread 75 "worker"': [[2], [2]], "Process 72 Thread 75": [[2]]}
    capture = speedscope(document(FRAMES, profiles))
    assert {thread: count for (_, thread, _), count in counted(capture).items()} == {"75 worker": 3, "75 ": 1}
    assert sorted(zip(capture.threads.pid.tolist(), capture.threads.tid.tolist(), strict=True)) == [(71, 75), (72, 75)]


def test_functions_that_pose_as_labels_stay_frames() -> None:
    posing = [frame('process 1:"init"', "/srv/p.py", 3), frame("thread (1): x", "/srv/p.py", 4), frame("f", "/srv/p.py", 5)]
    assert counted(speedscope(document(posing, {"Thread 7": [[0, 1, 2]]}))) == {
        ("-1 python", "7 ", ('process 1:"init" (p.py):3', "thread (1): x (p.py):4", "f (p.py):5")): 1
    }


def test_hostile_names_are_kept_as_they_are() -> None:
    name = "\x1b]0;x\x07;\n\t\ud800 <script> 12"
    capture = speedscope(document([frame(name, name, 2**31 - 1)], {f'Process 1 Thread 2 "{name}"': [[0]]}))
    assert name in capture.strings
    assert capture.dsos[0].path == name
    assert decode(encode(capture), "x").strings == capture.strings


def test_nothing_but_idle_threads() -> None:
    capture = speedscope(document([], {}))
    assert capture.quality.samples == 0
    assert capture.quality.notes[-1] == "every thread was idle: there are no samples"


def changed(**values: Any) -> dict[str, Any]:
    return document(FRAMES, PROFILES) | values


def profile(**values: Any) -> dict[str, Any]:
    whole = document(FRAMES, PROFILES)
    return whole | {"profiles": [whole["profiles"][0] | values]}


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (json.dumps(document(FRAMES, PROFILES)).encode()[:-20], "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"[]", "an unnamed program"),
        (changed(exporter="speedscope@1.2"), "'speedscope@1.2': only those of py-spy"),
        (changed(shared=None), "no list of frames"),
        (changed(shared={"frames": [1]}), "no list of frames"),
        (changed(profiles={}), "no list of profiles"),
        (changed(profiles=[3]), "profile 0 is not a sampled one"),
        (profile(type="evented"), "profile 0 is not a sampled one"),
        (profile(weights=[0.02]), "not as many weights"),
        (profile(weights=[0.02, 0.02, 0.02, 0.04]), "different weight"),
        (profile(weights=[0.02, 0.02, 0.02, "x"]), "does not weigh"),
        (profile(weights=[0.02, 0.02, 0.02, -1]), "does not weigh"),
        (profile(weights=[0.02, 0.02, 0.02, []]), "does not weigh"),
        (profile(weights=[float("nan")] * 4), "does not weigh"),
        (profile(weights=[10**400] * 4), "does not weigh"),
        (profile(samples=[[0], [0], [0], [5]]), "frames are not there"),
        (profile(samples=[[0], [0], [0], [-1]]), "frames are not there"),
        (profile(samples=[[0], [0], [0], [True]]), "frames are not there"),
        (profile(samples=[[0], [0], [0], 0]), "frames are not there"),
    ],
)
def test_damage_is_one_line(damaged: Any, message: str) -> None:
    with pytest.raises(FormatError, match=message) as raised:
        speedscope(damaged)
    assert "\n" not in str(raised.value)


def test_both_forms_of_one_recording_agree() -> None:
    text = f"{MAIN};thread (71): MainThread;<module> (prog.py:31);three (prog.py:9) 3\n"
    one = document(
        [*LABELS, frame("<module>", line=31), frame("three", line=9)], {'Process 71 Thread 71 "MainThread"': [[0, 1, 2, 3]] * 3}
    )
    assert counted(raw(text)) == counted(speedscope(one))


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Recordings at 50 Hz and at 100 Hz, two without a rate, and CPU time."""
    texts = {
        "slow": json.dumps(document(FRAMES, PROFILES, 0.02)),
        "again": json.dumps(document(FRAMES, PROFILES, 0.02)),
        "fast": json.dumps(document(FRAMES, PROFILES | {"Thread 9": [[2, 3]]}, 0.01)),
        "raw": RAW,
        "raw2": RAW,
        "cpu": "app 7/7 1.000000000: 500500 cpu-clock: \n\t1139 main+0x9 (/opt/app)\n\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return {name: f"{name}={tmp_path / name}" for name in texts}


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        (("slow", "cpu"), "slow counts py-spy in samples of non-idle wall time and cpu cpu-clock in ns"),
        (("cpu", "raw"), "cpu counts cpu-clock in ns and raw py-spy in samples of non-idle wall time"),
        (("slow", "fast"), "at 50 Hz, fast at 100 Hz"),
        (("raw", "fast"), "at an unknown rate, fast at 100 Hz"),
    ],
)
def test_other_measures_are_never_compared(
    files: dict[str, str], pair: tuple[str, str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *(files[name] for name in pair)]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize("pair", [("slow", "again"), ("raw", "raw2")])
def test_one_measure_is_compared(files: dict[str, str], pair: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *(files[name] for name in pair), "--format", "json"]) == 0
    compared = json.loads(capsys.readouterr().out)
    assert compared["unit"] == "samples of non-idle wall time"
    assert compared["candidates"][0]["total"]["delta"] == 0


def test_other_measures_are_never_added(files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for pair in (("slow", "cpu"), ("slow", "fast")):
        directory = tmp_path / "-".join(pair)
        directory.mkdir()
        for name in pair:
            (directory / name).write_bytes((tmp_path / name).read_bytes())
        assert main(["report", str(directory)]) == 1
        assert "the runs of one arm count different events" in capsys.readouterr().err
