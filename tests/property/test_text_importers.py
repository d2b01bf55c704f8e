"""Any text is read, or refused in one line, in time that grows with its length."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import BinaryIO

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.importers.folded import is_folded, read_folded
from collectors.importers.perf_script.reader import is_perf_script, read_perf_script
from collectors.importers.pyspy_raw import is_pyspy_raw, read_pyspy_raw
from collectors.importers.pyspy_speedscope import read_pyspy_speedscope
from profiler.errors import FormatError
from profiler.model.capture import Capture
from profiler.model.run import CaptureInfo, RunIdentity, RunMode

INFO = CaptureInfo(RunIdentity("file", "x", 0, RunMode.IMPORTED))
Reader = Callable[[BinaryIO, str, CaptureInfo], Capture]
PIECES = (
    " (a.py:3)", 'process 7:"', "thread (7): ",
    "\n", "\n\n", "\t", " ", "      ", "x", "12", "7/8", "[003]", "1.5:", "99999999999999999999", "cycles:", "cpu-clock:u:",
    "#", "# cmdline : a 'b", "(", ")", "(/x/prog)", "(inlined)", "([kernel.kallsyms])", "deadbeefdeadbeef", "main+0x1f",
    "[unknown]", "a.c:12", "PERF_RECORD_MMAP2", "\r", "\0", ";", "a;b", "0.25", "_ZN3fooE", "a::b->c::d", "\ufeff", "é",
)  # fmt: skip
N = 50_000


@given(st.lists(st.sampled_from(PIECES), max_size=60), st.sampled_from(["utf-8", "utf-16"]))
def test_any_text_is_read_or_refused(pieces: list[str], encoding: str) -> None:
    data = "".join(pieces).encode(encoding)
    for sniff, read in ((is_perf_script, read_perf_script), (is_folded, read_folded), (is_pyspy_raw, read_pyspy_raw)):
        sniff(data)
        check(data, read)


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    check(data, read_perf_script)
    check(data, read_folded)
    check(data, read_pyspy_raw)
    check(data, read_pyspy_speedscope)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(("name", "file", "line", "x")), inner, max_size=3)
    ),
    max_leaves=6,
)
PROFILES = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.just("sampled") | JSON,
            "name": st.just('Process 1 Thread 2 "x"') | JSON,
            "samples": st.lists(st.lists(st.integers(-1, 2) | JSON, max_size=3) | JSON, max_size=2) | JSON,
            "weights": st.lists(st.just(0.01) | JSON, max_size=2) | JSON,
        }
    )
    | JSON,
    max_size=2,
)


@given(st.lists(JSON, max_size=2) | JSON, PROFILES | JSON)
def test_any_speedscope_file_is_read_or_refused(frames: object, profiles: object) -> None:
    document = {"exporter": "py-spy@0", "shared": {"frames": frames}, "profiles": profiles}
    check(json.dumps(document).encode(), read_pyspy_speedscope)


@pytest.mark.parametrize(
    "text",
    [
        "f" + " (" * N + " 1",
        "f" + " (" * N + ":1) 1",
        ";" * N + "f (a.py:1) 1",
        "thread (1): " + ";" * N + "f (a.py:1) 1",
        'process 1:"' + '";' * N + "f (a.py:1) 1",
        "thread (1);" * N + "f (a.py:1) 1",
        "f (a.py:1) " + " " * N + "x",
        "f (" + "a.py:1" * N + ") 1",
        "thread (0x" + "f" * N + ");f (a.py:1) 1",
        "f (a.py:" + "1" * N + ") 1",
    ],
    ids=lambda text: text[:12],
)
def test_raw_text_of_py_spy_takes_time_by_its_length(text: str) -> None:
    is_pyspy_raw(text.encode())
    check(text.encode(), read_pyspy_raw)


def check(data: bytes, read: Reader) -> None:
    capture, refusal = None, ""
    try:
        capture = read(io.BytesIO(data), "text", INFO)
    except FormatError as error:
        refusal = str(error)
    if capture is None:
        assert refusal.startswith("text: ")
        assert "\n" not in refusal
        return
    assert (capture.stacks.prefix < np.arange(len(capture.stacks))).all()
    assert (capture.samples.stack < len(capture.stacks)).all()
    assert (capture.samples.weight >= 0).all()
    assert (np.diff(capture.samples.time_ns.astype(np.float64)) >= 0).all()


@pytest.mark.parametrize(
    "text",
    [
        "1 " * N + "1.5: x",
        " " * N + "1.5: x:",
        "x 1 1.5: ev: " + " " * N + "z (a)",
        "x 1 1.5: ev: \n\t12 " + "(" * N + ")" * (N - 1),
        "x 1 1.5: ev: \n\t12 " + " (" * N + ")",
        "x 1 1.5: ev: \n\t12 main+0x5 " + "(/ " * N + "(/x/prog)",
        "x 1 1.5: ev: " + "  deadbeefdeadbeef" * N + " (a)",
        "1.5: " * N,
        "[1] " * N + "1.5: e:",
        "x 1 1.5: ev: \n  " + "a:1[1] " * N,
        "x " + "1" * N + " 1.5: e:",
        "a;" * N + " 1",
        "a;" + " " * N + "b",
        "x 1 1.5: ev: \n\t12 " + "a::b->" * N + "a::b (/tmp/perf-1.map)",
        "x 1 1.5: ev: \n\t12 " + "a::" * N + "h0123456789abcdef (/x)",
    ],
    ids=range(15),
)
def test_long_lines_take_time_by_their_length(text: str) -> None:
    """With time by the square of it, each would take minutes."""
    for read in (read_perf_script, read_folded):
        check(text.encode(), read)
