"""Selectors: what they name, and what is said when they name nothing or too much."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from profiler.errors import UsageError
from profiler.model.run import RunMode
from profiler.store.records import SessionStart
from profiler.store.selectors import Selection, may_be_files, resolve, resolve_session
from profiler.store.store import Store, open_store
from support.sample_captures import plain_capture, run_info


@pytest.fixture(autouse=True)
def in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "store", create=True)


def session_of(store: Store, day: int, *variants: str, rounds: int = 2) -> str:
    """A session of two rounds; every arm once plain and once profiled in each."""
    name = store.begin_session(SessionStart(f"2026-03-{day:02}T10:00:00+00:00", "h", ("bench",), 1, has_rounds=True))
    position = 0
    for number in range(rounds):
        for mode in (RunMode.PLAIN, RunMode.PROFILED):
            for variant in variants:
                store.add(plain_capture(run_info(name, variant, number, mode, position)))
                position += 1
        store.finish_round(name, number)
    store.finish_session(name)
    return name


def keys(selection: Selection) -> list[tuple[str, int]]:
    return [(run.key.session, run.key.number) for run in selection.runs]


def test_variant_name_means_its_latest_session(store: Store) -> None:
    session_of(store, 1, "base", "other")
    second = session_of(store, 2, "base", "tuned")
    session_of(store, 3, "tuned")
    selection = resolve("base", store)
    assert selection.label == "base"
    assert keys(selection) == [(second, 0), (second, 2), (second, 4), (second, 6)]
    assert selection.files == ()
    assert resolve("variant:base", store) == selection


def test_last_is_no_session_without_runs(store: Store) -> None:
    """As a recording leaves behind that is killed before its first run."""
    whole = session_of(store, 1, "base")
    store.begin_session(SessionStart("2026-03-02T10:00:00+00:00", "h", ("bench",), 1, has_rounds=True))
    assert {key for key, _ in keys(resolve("last", store))} == {whole}
    assert resolve_session("last", store).session.name == whole


def test_last_is_the_latest_session(store: Store) -> None:
    session_of(store, 1, "base")
    latest = session_of(store, 2, "tuned")
    assert {key for key, _ in keys(resolve("last", store))} == {latest}
    assert resolve("last", store).label == "tuned"
    assert resolve(latest, store) == resolve("last", store) == resolve("session:last", store)


def test_session_of_several_variants_needs_one_named(store: Store) -> None:
    name = session_of(store, 1, "base", "tuned")
    with pytest.raises(UsageError, match=f"2 variants; name one of {name}/base, {name}/tuned"):
        resolve("last", store)
    assert resolve(f"{name}/tuned", store) == resolve("last/tuned", store) == resolve(f"session:{name}/tuned", store)


def test_label_names_a_selection(store: Store) -> None:
    session_of(store, 1, "base")
    selection = resolve("main branch=base", store)
    assert selection.label == "main branch"
    assert selection.runs == resolve("base", store).runs


def test_files_directories_and_globs(store: Store) -> None:
    for name in ("b.data", "a.data", ".hidden", "c.txt"):
        Path(name).write_text("x")
    Path("sub").mkdir()
    Path("sub", "z.data").write_text("x")
    assert resolve("a.data", None) == Selection("a.data", (), (Path("a.data"),))
    assert resolve("*.data", None).files == (Path("a.data"), Path("b.data"))
    assert resolve("**/*.data", None).files == (Path("a.data"), Path("b.data"), Path("sub/z.data"))
    assert resolve("sub", store).files == (Path("sub/z.data"),)
    assert resolve("old=sub", store).label == "old"
    assert resolve("file:a.data", store).files == (Path("a.data"),)


def test_file_whose_name_looks_like_a_label() -> None:
    Path("x=y").write_text("")
    assert resolve("x=y", None).files == (Path("x=y"),)


def test_recording_directory_is_one_recording() -> None:
    Path("perf.dir").mkdir()
    for name in ("data", "data.0", "data.1"):
        Path("perf.dir", name).write_text("PERFILE2")
    assert resolve("perf.dir", None).files == (Path("perf.dir"),)
    Path("perf.dir", "data").write_text("numbers")
    assert [path.name for path in resolve("perf.dir", None).files] == ["data", "data.0", "data.1"]


def test_standard_input(store: Store) -> None:
    assert resolve("-", store) == resolve("-", None) == Selection("stdin", (), (Path("-"),))
    assert resolve("new=-", None) == Selection("new", (), (Path("-"),))
    Path("-").write_text("a file of that name")
    assert resolve("file:-", None).files == resolve("./-", None).files == (Path("-").absolute(),)


def test_name_of_a_variant_and_of_a_file_is_ambiguous(store: Store) -> None:
    session_of(store, 1, "base")
    Path("base").write_text("x")
    with pytest.raises(UsageError, match="'base' is ambiguous: write variant:base or file:base"):
        resolve("base", store)
    assert resolve("file:base", store).files == (Path("base"),)
    assert resolve("variant:base", store).files == ()


def test_a_variant_beside_the_program_that_it_is_named_after(store: Store) -> None:
    session_of(store, 1, "base")
    Path("base").write_bytes(Path("/proc/self/exe").read_bytes()[:64])
    chosen = resolve("base", store)
    assert (chosen.files, len(chosen.runs)) == ((), len(resolve("variant:base", store).runs))
    assert resolve("file:base", store).files == (Path("base"),)
    assert resolve("base", None).files == (Path("base"),)
    assert not may_be_files("base")
    Path("directory").mkdir()
    Path("directory", "perf.data").write_text("x")
    assert [may_be_files(name) for name in ("absent", "directory")] == [False, True]


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("bsae", "'bsae': no such variant, session or file; nearest: base"),
        ("variant:tunde", "'variant:tunde': no such variant; nearest: tuned"),
        ("session:base", "no such session"),
        ("file:base", "no such file"),
        ("last/bas", "nearest: base"),
        ("nowhere/*.data", "no such variant, session or file"),
    ],
)
def test_unknown_names_come_with_the_nearest(store: Store, selector: str, message: str) -> None:
    session_of(store, 1, "base", "tuned")
    with pytest.raises(UsageError, match=message):
        resolve(selector, store)


def test_nothing_recorded_yet(store: Store) -> None:
    with pytest.raises(UsageError, match="nothing has been recorded yet"):
        resolve("last", store)
    with pytest.raises(UsageError, match="the store is empty"):
        resolve("base", store)
    with pytest.raises(UsageError, match="no such file, and there is no store"):
        resolve("base", None)


def test_empty_directory_is_named() -> None:
    Path("empty").mkdir()
    with pytest.raises(UsageError, match="empty: no files in this directory"):
        resolve("empty", None)


def test_session_without_runs(store: Store) -> None:
    session_of(store, 1, rounds=1)
    with pytest.raises(UsageError, match="has no runs: its recording was cut short"):
        resolve("last", store)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"program": "cd" * 20}, f"build IDs {'ab' * 20} and {'cd' * 20}"),
        ({"command": ("bench", "--slots", "64")}, "commands /opt/base --slots 32 and bench --slots 64"),
        ({"event": "cycles"}, "events cpu-clock and cycles"),
        ({"frequency_hz": 99}, "rates 1999 Hz and 99 Hz"),
    ],
)
def test_runs_of_two_kinds_under_one_name_are_listed(store: Store, change: dict[str, object], message: str) -> None:
    name = session_of(store, 1, "base")
    info = run_info(name, "base", 1)
    if "program" in change:
        info = replace(info, program=replace(info.program, build_id=change["program"]))
    elif "command" in change:
        info = replace(info, command=change["command"])
    else:
        info = replace(info, perf=replace(info.perf, **change))
    store.add(plain_capture(info))
    with pytest.raises(UsageError, match="runs under 'base' are not of one kind") as error:
        resolve("base", store)
    assert message in str(error.value)
    failed = plain_capture(info, failure="exit code 1")
    store.remove(store.runs()[-1:])
    store.add(failed)
    assert len(resolve("base", store).runs) == 5


def test_runs_of_a_round_cut_short_are_left_out_unless_there_are_no_others(store: Store) -> None:
    whole = session_of(store, 1, "base", rounds=1)
    store.add(plain_capture(run_info(whole, "base", 1, position=2)))
    assert keys(resolve("base", store)) == [(whole, 0), (whole, 1)]
    cut = store.begin_session(SessionStart("2026-03-09T10:00:00+00:00", "h", ("bench",), 1, has_rounds=True))
    store.add(plain_capture(run_info(cut, "base", 0)))
    assert keys(resolve("base", store)) == [(cut, 0)]


def test_sessions_for_show_and_rm(store: Store) -> None:
    first = session_of(store, 1, "base", "tuned")
    second = session_of(store, 2, "base")

    def target(selector: str) -> tuple[str, str]:
        found = resolve_session(selector, store)
        return found.session.name, found.variant

    assert target("last") == (second, "")
    assert target(first) == target(f"session:{first}") == (first, "")
    assert target("base") == target("variant:base") == (second, "base")
    assert target(f"{first}/tuned") == (first, "tuned")
    assert target("tuned") == (first, "tuned")
    with pytest.raises(UsageError, match="nearest: tuned"):
        resolve_session("tunde", store)
    with pytest.raises(UsageError, match="no such session"):
        resolve_session("session:tuned", store)


def test_a_bare_name_is_no_file_where_the_directory_may_not_be_looked_into(tmp_path: Path) -> None:
    """As in root's home after `runuser`."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    (tmp_path / "here/base").touch()
    (tmp_path / "here").chmod(0o700)
    assert may_be_files("base")
    os.seteuid(65534)
    try:
        assert not may_be_files("base")
        with pytest.raises(PermissionError):
            may_be_files(str(tmp_path / "here/base"))
    finally:
        os.seteuid(0)
