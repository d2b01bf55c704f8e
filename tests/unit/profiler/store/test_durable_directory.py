"""Directories that are made with everything above them; that they survive a power cut is shown by the tests of kill points."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from profiler.store.durable_directory import make_directory


def test_what_is_missing_above_is_made_too_and_only_the_last_gets_the_mode(tmp_path: Path) -> None:
    os.chmod(tmp_path, 0o755)
    before = os.umask(0o022)
    try:
        make_directory(tmp_path / "a" / "b" / "c", 0o700)
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("a", "a/b", "a/b/c")]
    assert modes == [0o755, 0o755, 0o700]


def test_one_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir(0o750)
    (tmp_path / "there" / "file").write_text("x")
    make_directory(tmp_path / "there", 0o700)
    assert stat.S_IMODE((tmp_path / "there").stat().st_mode) == 0o750
    assert (tmp_path / "there" / "file").read_text() == "x"


def test_a_name_beside_one_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_directory(Path("here"))
    assert (tmp_path / "here").is_dir()


@pytest.mark.parametrize(("name", "error"), [("file", FileExistsError), ("file/below", NotADirectoryError)])
def test_a_file_in_its_place_is_an_error(tmp_path: Path, name: str, error: type[OSError]) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(error):
        make_directory(tmp_path / name)
