"""Selectors: how runs and files are named on the command line.

last              the latest session that has runs
NAME              a variant, in its latest session
SESSION           a session; SESSION/NAME one variant of it (SESSION may be "last")
FILE  DIR  GLOB   files: one arm, one run per file (a glob must reach us quoted)
FILE#PART         of a file that holds several arms, as hyperfine writes: a command's number from 1, or the command
-                 a recording on standard input
LABEL=SELECTOR    any of these under another name
variant:NAME  session:SESSION[/NAME]  file:PATH      when a name could be two of them
"""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.errors import UsageError
from profiler.model.quick_dataclass import dataclass
from profiler.model.standard_input import STANDARD_INPUT

if TYPE_CHECKING:
    from profiler.store.records import RunSummary, StoredRun, StoredSession
    from profiler.store.store import Store

LAST = "last"
_LABEL = re.compile(r"([^=/:*?\[\]]+)=(.+)", re.DOTALL)
_KINDS = ("variant", "session", "file")
_ELF_MAGIC = b"\x7fELF"


@dataclass(frozen=True, slots=True)
class Selection:
    """One arm: ``runs`` of the store in the order of execution, or ``files`` in name order; the other one is empty.
    ``part``: of the file, "" = all of it."""

    label: str
    runs: tuple[StoredRun, ...]
    files: tuple[Path, ...]
    part: str = ""


@dataclass(frozen=True, slots=True)
class SessionTarget:
    """A session, or the runs of one variant of it (``variant`` "" = all)."""

    session: StoredSession
    variant: str


def resolve(selector: str, store: Store | None) -> Selection:
    """The one arm that ``selector`` names.

    Runs of a round that was cut short are left out unless the variant has no others.  ``UsageError``: unknown (with the nearest
    names), ambiguous, a session of several variants, or runs that differ in build ID, command, event or rate.
    """
    label, selector = _split_label(selector)
    found = _candidates(selector, store)
    if not found:
        raise _unknown(selector, store)
    if len(found) > 1:
        options = " or ".join(f"{kind}:{selector}" for kind in found)
        raise UsageError(f"{selector!r} is ambiguous: write {options}")
    selection = next(iter(found.values()))()
    return replace(selection, label=label) if label else selection


def may_be_files(name: str) -> bool:
    """Whether files have this name, so that a variant of the same name needs ``variant:`` before it."""
    return bool(_files(name)) and not _is_program(name)


def resolve_session(selector: str, store: Store) -> SessionTarget:
    """The session, or the variant of one, that ``selector`` names; files are not looked at.  ``UsageError`` as ``resolve``."""
    kind, name = _split_kind(selector)
    for session, variant in [] if kind == "variant" else [_split_session(name)]:
        known = _session_named(session, store)
        if known and (not variant or variant in _variants(known, store)):
            return SessionTarget(known, variant)
    runs = () if kind == "session" else store.runs(variant=name)
    if not runs:
        raise _unknown(selector, store)
    sessions = [session for session in store.sessions() if session.name in {run.key.session for run in runs}]
    return SessionTarget(sessions[-1], name)


def resolve_stored(selector: str, store: Store) -> Selection:
    """As ``resolve`` for somebody elsewhere, to whom only the store is open: nothing is read, or said, of files."""
    match = _LABEL.fullmatch(selector)
    label, selected = (match[1], match[2]) if match else ("", selector)
    kind, name = _split_kind(selected)
    session, variant = _split_session(name)
    known = _session_named(session, store) if kind in ("", "session") else None
    if known and (not variant or variant in _variants(known, store)):
        selection = _of_session(known, variant, store)
    elif kind in ("", "variant") and (runs := store.runs(variant=name)):
        latest = max(store.sessions(), key=lambda session: _age_rank(session, runs))
        selection = _of_session(latest, name, store)
    else:
        raise UsageError(f"{selector!r}: no session and no variant of this name in the store")
    return replace(selection, label=label) if label else selection


def check_uniform(label: str, summaries: Iterable[RunSummary]) -> None:
    """``UsageError`` that lists what differs when one name holds two build IDs, commands, events or rates; failed runs and
    facts that are not known do not count."""
    valid = [summary for summary in summaries if not summary.failure]
    differing = []
    for what, shown in _IDENTITY.items():
        values = sorted({text for summary in valid if (text := shown(summary))})
        if len(values) > 1:
            differing.append(f"{what} {' and '.join(values)}")
    if differing:
        raise UsageError(f"runs under {label!r} are not of one kind: {'; '.join(differing)}: select or record them apart")


_IDENTITY: Mapping[str, Callable[[RunSummary], str]] = {
    "build IDs": lambda run: run.build_id,
    "commands": lambda run: " ".join(run.command),
    "events": lambda run: run.event,
    "rates": lambda run: _rate(run),
}


def _rate(run: RunSummary) -> str:
    if not run.event:
        return ""
    return f"{run.frequency_hz} Hz" if run.frequency_hz else f"period {run.period}"


def _file_and_part(name: str) -> tuple[Path, str] | None:
    """FILE and what stands behind the first # before which there is a file."""
    for place, character in enumerate(name):
        if character == "#" and place + 1 < len(name) and Path(name[:place]).is_file():
            return Path(name[:place]), name[place + 1 :]
    return None


def _split_label(selector: str) -> tuple[str, str]:
    match = _LABEL.fullmatch(selector)
    if match is None or Path(selector).exists() or _file_and_part(selector) is not None:
        return "", selector
    return match[1], match[2]


def _split_kind(selector: str) -> tuple[str, str]:
    kind, colon, rest = selector.partition(":")
    return (kind, rest) if colon and kind in _KINDS else ("", selector)


def _split_session(name: str) -> tuple[str, str]:
    session, _, variant = name.partition("/")
    return session, variant


def _candidates(selector: str, store: Store | None) -> dict[str, Callable[[], Selection]]:
    """What the selector could mean: kind -> how to get it."""
    if selector == str(STANDARD_INPUT):
        return {"file": lambda: Selection("stdin", (), (STANDARD_INPUT,))}
    kind, name = _split_kind(selector)
    found: dict[str, Callable[[], Selection]] = {}
    if store is not None and kind in ("", "session"):
        session, variant = _split_session(name)
        known = _session_named(session, store)
        if known and (not variant or variant in _variants(known, store)):
            found["session"] = lambda: _of_session(known, variant, store)
    if store is not None and kind in ("", "variant") and (runs := store.runs(variant=name)):
        latest = max(store.sessions(), key=lambda session: _age_rank(session, runs))
        found["variant"] = lambda: _of_session(latest, name, store)
    is_known = kind == "" and bool(found)
    if kind in ("", "file") and not (is_known and (name == LAST or _is_program(name))) and (files := _files(name)):
        found["file"] = lambda: Selection(_file_label(name), (), files)
    elif not found and kind in ("", "file") and (split := _file_and_part(name)) is not None:
        path, part = split
        found["file"] = lambda: Selection(f"{path.name}#{part}", (), (path,), part)
    return found


def _age_rank(session: StoredSession, runs: tuple[StoredRun, ...]) -> tuple[bool, str, str]:
    return any(run.key.session == session.name for run in runs), session.start.started_at, session.name


def _session_named(name: str, store: Store) -> StoredSession | None:
    sessions = store.sessions()
    if name == LAST:
        # One that was killed before its first run says nothing that anybody asks for.
        with_runs = {run.key.session for run in store.runs()}
        filled = [session for session in sessions if session.name in with_runs]
        return (filled or sessions)[-1] if sessions else None
    return next((session for session in sessions if session.name == name), None)


def _variants(session: StoredSession, store: Store) -> list[str]:
    return sorted({run.summary.variant for run in store.runs(session.name)})


def _of_session(session: StoredSession, variant: str, store: Store) -> Selection:
    variants = _variants(session, store)
    if not variants:
        raise UsageError(f"session {session.name} has no runs: its recording was cut short; record again")
    if not variant and len(variants) > 1:
        options = ", ".join(f"{session.name}/{name}" for name in variants)
        raise UsageError(f"session {session.name} has {len(variants)} variants; name one of {options}")
    name = variant or variants[0]
    runs = store.runs(session.name, name)
    whole = tuple(run for run in runs if run.round_complete)
    chosen = tuple(sorted(whole or runs, key=lambda run: (run.summary.position, run.key.number)))
    check_uniform(name, (run.summary for run in chosen))
    return Selection(name, chosen, ())


def _is_program(name: str) -> bool:
    """A variant is often recorded beside the program that it is named after, which is no recording."""
    try:
        if not Path(name).is_file():
            return False
        with Path(name).open("rb") as stream:
            return stream.read(len(_ELF_MAGIC)) == _ELF_MAGIC
    except (OSError, ValueError):
        return False


def _files(name: str) -> tuple[Path, ...]:
    path = Path(name)
    if path.is_dir() and not _is_recording(path):
        return _regular_files(path.iterdir())
    if path.exists():
        return (path.absolute() if path == STANDARD_INPUT else path,)
    if glob.has_magic(name):
        return _regular_files(Path(match) for match in glob.glob(name, recursive=True))
    return ()


def _regular_files(paths: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(sorted(path for path in paths if path.is_file() and not path.name.startswith(".")))


def _is_recording(directory: Path) -> bool:
    """`perf record --threads` writes a directory that is one recording."""
    from collectors.perf_data.directory import is_recording_directory

    return is_recording_directory(directory)


def _file_label(name: str) -> str:
    return Path(name).name or name


def _unknown(selector: str, store: Store | None) -> UsageError:
    kind, name = _split_kind(selector)
    if Path(name).is_dir():
        return UsageError(f"{name}: no files in this directory")
    if name == LAST:
        return UsageError("nothing has been recorded yet; `slotscope record -- CMD` does")
    if store is None:
        return UsageError(f"{selector!r}: no such file, and there is no store that could hold a variant of this name")
    sessions = store.sessions()
    runs = store.runs()
    known = sorted({run.summary.variant for run in runs})
    known += [session.name for session in sessions] + sorted({f"{run.key.session}/{run.summary.variant}" for run in runs})
    import difflib

    nearest = difflib.get_close_matches(name, known, n=3, cutoff=0.5) or known[:3]
    hint = f"; nearest: {', '.join(nearest)}" if nearest else "; the store is empty"
    what = f"no such {kind}" if kind else "no such variant, session or file"
    return UsageError(f"{selector!r}: {what}{hint}")
