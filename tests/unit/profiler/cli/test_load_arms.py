"""Selectors to arms: names that tell arms apart, the store that is not needed, and what is said when nothing is there."""

from __future__ import annotations

import io
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from profiler.cli.context import CliContext
from profiler.cli.load_arms import load_arms
from profiler.cli.main import main
from profiler.errors import FormatError, StoreError, UsageError
from profiler.stored_arms import distinct_names
from support import perf_data_writer as writer
from support.perf_data_writer import RecordingWriter, Sample
from symbolize.symbol_tools import symbol_tools


@pytest.mark.parametrize(
    ("labels", "selectors", "names"),
    [
        (["a", "b"], ["x/a", "x/b"], ("a", "b")),
        (["perf.data", "perf.data"], ["x/perf.data", "y/perf.data"], ("x/perf.data", "y/perf.data")),
        (["a", "a", "b"], ["a", "a", "b"], ("a", "a (2)", "b")),
        (["a"], ["last"], ("a",)),
    ],
)
def test_distinct_names(labels: Sequence[str], selectors: Sequence[str], names: tuple[str, ...]) -> None:
    assert distinct_names(labels, selectors) == names


def load(selector: str, store: Path, *more: str) -> None:
    context = CliContext(store, io.StringIO(), io.StringIO())
    load_arms([selector, *more], context, symbol_tools(()).locator, lambda message: None)


def written(path: Path, first_time: int) -> Path:
    content = RecordingWriter()
    content.comm(10, 10, b"prog")
    content.mmap2(10, 0x400000, 0x1000, 0, b"/bin/prog")
    for time in range(first_time, first_time + 3):
        content.sample(Sample(ip=0x400010, time=time, chain=(writer.USER_MARKER, 0x400010)))
    path.write_bytes(content.build())
    return path


def test_copies_of_one_recording_are_no_runs(tmp_path: Path) -> None:
    """The times of the samples tell runs of one program apart; both arms may be the same recording."""
    store = tmp_path / "none"
    first, second = written(tmp_path / "a.data", 5), written(tmp_path / "b.data", 6)
    load(str(tmp_path / "*.data"), store)
    load(str(first), store, str(first))
    shutil.copy(first, tmp_path / "c.data")
    with pytest.raises(UsageError) as raised:
        load(str(tmp_path / "*.data"), store)
    assert f"{tmp_path / 'c.data'} holds the same samples as {first}" in str(raised.value)
    second.unlink()
    with pytest.raises(UsageError, match="holds the same samples"):
        load(f"old={tmp_path}", store)


def test_an_empty_directory(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no files in this directory"):
        load(str(tmp_path), tmp_path / "none")


def test_a_name_without_a_store(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file, and there is no store"):
        load("base", tmp_path / "none")


def test_a_damaged_store_is_no_reason_to_refuse_files(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    (store / "catalog.sqlite").write_bytes(b"this is no database, it only has the name of one" * 100)
    recording = tmp_path / "not-a-recording.data"
    recording.write_bytes(b"x" * 200)
    for selector in (str(recording), f"label={recording}"):
        with pytest.raises(FormatError, match=r"not-a-recording\.data"):
            load(selector, store)
    with pytest.raises(StoreError):
        load("base", store)


def test_the_store_is_not_made_by_reading(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--store", str(tmp_path / "new"), "report", "last"]) == 2
    assert capsys.readouterr().err.startswith("slotscope: error: nothing has been recorded yet")
    assert not (tmp_path / "new").exists()


class Piped(io.StringIO):
    """Standard input of a process; ``is_terminal``: nothing is piped into it."""

    def __init__(self, content: bytes, is_terminal: bool) -> None:
        super().__init__()
        self.buffer = io.BytesIO(content)
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


def test_standard_input_is_read_once_and_not_from_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "none"
    content = written(tmp_path / "a.data", 5).read_bytes()
    other = written(tmp_path / "b.data", 6)
    monkeypatch.setattr("sys.stdin", Piped(content, is_terminal=False))
    with pytest.raises(UsageError, match="read only once"):
        load("-", store, "other=-")
    load("-", store, str(other))
    with pytest.raises(FormatError, match="standard input: empty file"):
        load("-", store)
    monkeypatch.setattr("sys.stdin", Piped(content, is_terminal=True))
    with pytest.raises(UsageError, match=r"nothing is piped into it: perf record -o - CMD \| slotscope report -"):
        load("-", store)
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(UsageError, match="nothing is piped into it"):
        load("-", store)
