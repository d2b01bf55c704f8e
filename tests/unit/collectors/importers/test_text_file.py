"""Text files are found by their content, through the way that every recording takes."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path

import pytest

from collectors.recording_file import read_recording
from profiler.errors import FormatError
from profiler.model.capture import Capture
from profiler.model.run import RunMode
from symbolize.locate import Locator

PERF_SCRIPT = (
    "x y 1 [000] 1.000001:       7 cycles: \n\t 12 main (/x/prog)\n\n"
    "x y 1 [000] 2.000001:       8 cycles: \n\t 12 main (/x/prog)\n"
)
FOLDED = "main;leaf 7\nmain 8\n"


def read(path: Path) -> Capture:
    return read_recording(path, None, Locator())


@pytest.mark.parametrize("text", [PERF_SCRIPT, FOLDED], ids=["perf script", "folded"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_file_is_read_by_its_content(text: str, encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "profile.data"
    path.write_bytes(text.encode(encoding))
    capture = read(path)
    assert capture.samples.weight.tolist() == [7, 8]
    assert (capture.info.identity.variant, capture.info.identity.mode, capture.info.source) == (
        "profile", RunMode.IMPORTED, str(path)
    )  # fmt: skip


def test_wrapped_text(tmp_path: Path) -> None:
    import zstandard

    for name, data in (("x.gz", gzip.compress(PERF_SCRIPT.encode())), ("x.zst", zstandard.compress(PERF_SCRIPT.encode()))):
        (tmp_path / name).write_bytes(data)
        assert read(tmp_path / name).samples.weight.tolist() == [7, 8]


def test_a_compressed_text_that_was_cut_says_so(tmp_path: Path) -> None:
    samples = (f"x y 1 [000] {n}.000001:       7 cycles: \n\t {n * 7919:x} main (/x/prog)\n\n" for n in range(9999))
    whole = gzip.compress("".join(samples).encode())
    (tmp_path / "cut.gz").write_bytes(whole[: len(whole) // 2])
    capture = read(tmp_path / "cut.gz")
    assert 1000 < len(capture.samples) < 9999
    assert capture.quality.is_unfinished
    assert "the compressed file ends in the middle; what could be read was used" in capture.quality.notes


def test_text_on_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(PERF_SCRIPT.encode())))
    capture = read(Path("-"))
    assert (capture.samples.weight.tolist(), capture.info.source) == ([7, 8], "standard input")


@pytest.mark.parametrize("text", ["hello\nworld\n", '{"name": "x", "frames": []}\n', "a,b,c\n1,2,3\n", "<html></html>\n"])
def test_other_text_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text(text)
    with pytest.raises(FormatError, match="a text file; neither `perf script` text nor folded stacks: name the file"):
        read(tmp_path / "x.txt")
