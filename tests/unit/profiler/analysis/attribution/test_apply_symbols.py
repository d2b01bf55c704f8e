"""Symbols put to frames."""

from __future__ import annotations

from dataclasses import replace

from profiler.analysis.attribution.apply_symbols import apply_symbols, frames_by_dso
from profiler.model.dso import Dso, DsoKind
from profiler.model.function import NameSource
from profiler.model.symbols import SymbolizedCapture
from support.profile_from_text import profile_from_text

DRAWN = """
main                      main               main             main
outer > mid@m.c:2 > in@i.c:9  libc.so!memmove  [kernel]!fault   [kernel]!?
.                         .                  .                [unknown]!?
"""


def chain(symbolized: SymbolizedCapture, frame: int) -> list[tuple[str, str, int]]:
    chains = symbolized.chains
    return [
        (
            symbolized.functions[chains.function[row]].name,
            symbolized.files[chains.file[row]] if chains.file[row] >= 0 else "",
            int(chains.line[row]),
        )
        for row in range(chains.start[frame], chains.start[frame + 1])
    ]


def test_only_frames_without_a_name_from_the_recording_are_asked() -> None:
    capture = profile_from_text(DRAWN).capture
    asked = {capture.dsos[dso].name: rows.tolist() for dso, rows in frames_by_dso(capture).items()}
    by_name = {"app": 2, "libc.so": 1}
    assert {name: len(rows) for name, rows in asked.items()} == by_name
    assert all(rows == sorted(rows) for rows in asked.values())


def test_chains_stand_at_their_frames_innermost_first() -> None:
    symbolized = profile_from_text(DRAWN).symbolized()
    found = [chain(symbolized, frame) for frame in range(len(symbolized.capture.frames))]
    assert found == [
        [("main", "", 0)],
        [("in", "i.c", 9), ("mid", "m.c", 2), ("outer", "", 0)],
        [("memmove", "", 0)],
        [("fault", "", 0)],
        [("[kernel]", "", 0)],
        [("[unknown]", "", 0)],
    ]
    assert symbolized.has_debug_info.tolist() == [0, 1, 0, 0, 0, 0]
    assert len(set(symbolized.functions)) == len(symbolized.functions)


def test_names_from_the_recording_get_keys() -> None:
    profile = profile_from_text("main  [kernel]!fault.isra.0")
    symbolized = apply_symbols(profile.capture, {}, lambda name: (name.removesuffix(".isra.0"), "trait"))
    fault = next(function for function in symbolized.functions if function.name == "fault.isra.0")
    assert (fault.key, fault.trait_key, fault.name_source) == ("fault", "trait", NameSource.CAPTURE)


def test_code_known_by_its_source_file_has_file_line_and_its_own_name_as_key() -> None:
    capture = profile_from_text("main  [kernel]!<module>").capture
    row = next(row for row, dso in enumerate(capture.dsos) if dso.name == "[kernel]")
    frame = int((capture.frames.dso == row).nonzero()[0][0])
    for line, expected in ((7, 7), (2**64 - 1, 2**31 - 1)):
        offset = capture.frames.offset.copy()
        offset[frame] = line
        dsos = (*capture.dsos[:row], Dso("/srv/relay.py", b"", DsoKind.SOURCE), *capture.dsos[row + 1 :])
        changed = replace(capture, dsos=dsos, frames=replace(capture.frames, offset=offset))
        symbolized = apply_symbols(changed, {}, lambda name: (name.replace("<module>", ""), ""))
        assert chain(symbolized, frame) == [("<module>", "/srv/relay.py", expected)]
        assert "<module>" in {function.key for function in symbolized.functions}


def test_a_dso_without_an_answer_stays_unresolved() -> None:
    profile = profile_from_text("main  libc.so!malloc")
    symbolized = apply_symbols(profile.capture, {})
    offsets = profile.capture.frames.offset.tolist()
    assert [function.name for function in symbolized.functions] == [f"app+0x{offsets[0]:x}", f"libc.so+0x{offsets[1]:x}"]
    assert {function.name_source for function in symbolized.functions} == {NameSource.UNRESOLVED}


def test_outcomes_count_frames_without_names() -> None:
    symbolized = profile_from_text(DRAWN + "?  libc.so!?  libc.so!?  [kernel]!x\n").symbolized()
    names = [dso.name for dso in symbolized.capture.dsos]
    found = {names[outcome.dso]: (outcome.frames, outcome.unresolved, outcome.status) for outcome in symbolized.outcomes}
    assert found["app"] == (3, 1, "stripped: no symbol table")
    assert found["libc.so"] == (2, 1, "stripped: no symbol table")
    assert found["[kernel]"][:2] == (3, 1)
    assert "kptr_restrict" in found["[kernel]"][2]
    assert found["[unknown]"] == (1, 1, "no mapping covers these addresses")
