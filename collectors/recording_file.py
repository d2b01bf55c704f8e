"""Recordings on disk into captures: opens the file and finds what ingesting needs of this host."""

from __future__ import annotations

import contextlib
import errno
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

from collectors.ingest.frame_builder import KernelNames
from collectors.ingest.ingest import ImageSource, IngestEnvironment, RuleStore, ingest_indexed
from collectors.ingest.jit_dump import dump_paths
from collectors.ingest.kernel_identity import KernelIdentity, kernel_identity
from collectors.jit_maps import JitMapFiles, with_names_of_host
from collectors.perf_data.expansion import Progress, silent
from collectors.perf_data.file_kind import FileKind, file_kind, may_be_json
from collectors.perf_data.file_wrapping import unwrapped
from collectors.perf_data.reader import Recording, open_plain
from profiler.errors import FormatError, UsageError
from profiler.model.arrays import UInt64Column
from profiler.model.capture import Capture, empty_capture
from profiler.model.dso import UNREAD_BUILD, Dso, DsoKind
from profiler.model.mapped_builds import MappedBuilds
from profiler.model.run import CaptureInfo, RunIdentity, RunMode
from profiler.model.standard_input import STANDARD_INPUT
from symbolize.elf.identity import identity_of

if TYPE_CHECKING:
    from collectors.importers.benchmark_file import MeasuredArm

# Text in UTF-16, or with names that hold control characters, does not look like text at first.
_PERHAPS_TEXT = (FileKind.TEXT, FileKind.OTHER)
_JSON_START = 64
# As of a bad disk, and of files of /proc that cannot be read from their beginning.
_READ_ERRORS = frozenset({errno.EIO, errno.EINVAL})
# Commands of a benchmark that a message lists.
_MOST_NAMED = 8


class Locator(ImageSource, Protocol):
    """What this host offers: binaries, and the symbols of its kernel (``symbolize.locate.Locator``)."""

    unwind_rules: RuleStore | None

    def kernel_symbols(self, build_id: bytes, release: str, text_address: int) -> KernelNames | None:
        """Symbols of the running kernel if it is this one."""


def read_recording(
    path: Path,
    info: CaptureInfo | None,
    locator: Locator,
    progress: Progress = silent,
    mapped: MappedBuilds | None = None,
) -> Capture:
    """The capture of a perf.data file, of a directory that is one recording, or of what comes on standard input ("-"); also
    of `perf script` text and of folded stacks.

    Without ``info`` the run is named after the file (session "file", mode IMPORTED).  Names of kernel frames come from the
    running kernel when it is the one that was recorded.  ``mapped``: what the recorded processes had mapped, where paths do not
    tell which builds these are.  ``FormatError`` for files that cannot be read or are no recordings.
    """
    if path.is_dir():
        from collectors.perf_data.directory import open_directory

        recording = Recording(open_directory(path, progress))
        return _capture(recording, path, info, locator, mapped)
    with _opened(path) as stream:
        plain = unwrapped(stream, _shown_name(path), progress)
        if file_kind(plain.source) in _PERHAPS_TEXT:
            # Not needed for recordings of perf, and takes a noticeable part of a short report's time.
            from collectors.importers.text_file import read_text, text_reader

            read = text_reader(plain.source)
            if read is not None:
                return read_text(plain, info or imported_info(path), read)
        return _capture(open_plain(plain, progress), path, info, locator, mapped)


def read_runs(path: Path, locator: Locator, progress: Progress = silent, part: str = "") -> tuple[Capture, ...]:
    """Every run that a file holds: one of a recording, all executions of what a benchmark measured (``hyperfine``, Google
    Benchmark), which have no samples.

    ``part``: which of several commands, by number from 1 or by name; "" = the only one.  ``UsageError`` for a part that the
    file does not have, or when one must be named; else as ``read_recording``.
    """
    arms = _benchmark_arms(path, progress)
    if not arms:
        if part:
            raise UsageError(f"{_shown_name(path)} is one recording and has no part {part!r}: leave #{part} out")
        return (read_recording(path, None, locator, progress),)
    return tuple(empty_capture(info) for info in _chosen(arms, part, _shown_name(path)).runs)


def read_arms(path: Path, locator: Locator, progress: Progress = silent, part: str = "") -> tuple[Capture, ...]:
    """As ``read_runs``, but without ``part`` the runs of all commands, each named as its variant."""
    arms = () if part else _benchmark_arms(path, progress)
    if not arms:
        return read_runs(path, locator, progress, part)
    return tuple(empty_capture(info) for arm in arms for info in arm.runs)


def _benchmark_arms(path: Path, progress: Progress) -> tuple[MeasuredArm, ...]:
    """Nothing for any other file; standard input is looked at once only, as a recording."""
    if path == STANDARD_INPUT or not path.is_file():
        return ()
    with _opened(path) as stream:
        if not may_be_json(stream.read(_JSON_START)):
            return ()
        stream.seek(0)
        source = unwrapped(stream, str(path), progress).source
        from collectors.importers.benchmark_json import benchmark_reader, read_benchmark

        read = benchmark_reader(source)
        return read_benchmark(source, imported_info(path), read) if read is not None else ()


def _chosen(arms: Sequence[MeasuredArm], part: str, source: str) -> MeasuredArm:
    by_name = [arm for arm in arms if arm.name == part]
    if not part and len(arms) == 1:
        return arms[0]
    if part.isdecimal() and not by_name and 0 < int(part) <= len(arms):
        return arms[int(part) - 1]
    if len(by_name) == 1:
        return by_name[0]
    options = "; ".join(f"{source}#{number} is {arm.name}" for number, arm in enumerate(arms[:_MOST_NAMED], 1))
    more = f"; and {len(arms) - _MOST_NAMED} more" if len(arms) > _MOST_NAMED else ""
    what = "has no part" if part and not by_name else "has several parts" if not part else "has several commands"
    raise UsageError(f"{source} {what}{f' {part!r}' if part else ''}: name one, {options}{more}")


def _capture(
    recording: Recording, path: Path, info: CaptureInfo | None, locator: Locator, mapped: MappedBuilds | None
) -> Capture:
    index = recording.index()
    kernel = _LazyKernelNames(locator, kernel_identity(recording.features, index.side_band))
    environment = IngestEnvironment(images=locator, kernel=kernel, unwind_rules=locator.unwind_rules, mapped=mapped)
    capture = ingest_indexed(recording, index, info or imported_info(path), environment)
    capture = with_names_of_host(capture, JitMapFiles(), dump_paths(index.side_band))
    if mapped is not None:
        return with_own_build_ids(capture, locator, mapped)
    return capture if info is None else with_build_ids(capture, locator)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    if path == STANDARD_INPUT:
        yield sys.stdin.buffer
        return
    try:
        stream = path.open("rb")
    except OSError as error:
        raise FormatError(str(path), f"cannot be opened: {error.strerror}") from error
    with stream:
        try:
            yield stream
        except OSError as error:
            # A read does not say of what it was; what is written meanwhile is not at fault for this.
            if error.filename is None and error.errno in _READ_ERRORS:
                raise FormatError(str(path), f"cannot be read: {error.strerror}") from error
            raise


def _shown_name(path: Path) -> str:
    return "standard input" if path == STANDARD_INPUT else str(path)


def with_build_ids(capture: Capture, locator: Locator) -> Capture:
    """``capture``, whose run has just ended, with the build IDs that perf left out: it keeps those of files that a sample fell
    into, not of those that only called.  Files that were changed since the run began are left as they are."""
    started_ns = datetime.fromisoformat(capture.info.started_at).timestamp() * 1e9 if capture.info.started_at else 0.0
    is_used = set(capture.frames.dso.tolist())
    dsos = list(capture.dsos)
    for row, dso in enumerate(dsos):
        if dso.kind == DsoKind.FILE and not dso.build_id and row in is_used and _is_unchanged(Path(dso.path), started_ns):
            image = locator.image(dso)
            dsos[row] = replace(dso, build_id=bytes(image.build_id)) if image is not None else dso
    return replace(capture, dsos=tuple(dsos))


def with_own_build_ids(capture: Capture, locator: Locator, mapped: MappedBuilds) -> Capture:
    """``capture`` of processes that may see other files than this host under the same paths: whatever has no build ID gets one,
    so that it is never taken for a file of this host; where it cannot be told, ``UNREAD_BUILD``."""
    return replace(capture, dsos=tuple(_identified(dso, locator, mapped) for dso in capture.dsos))


def _identified(dso: Dso, locator: Locator, mapped: MappedBuilds) -> Dso:
    if dso.build_id or dso.kind not in (DsoKind.FILE, DsoKind.VDSO):
        return dso
    image = locator.image(dso) if mapped.has_one_root or dso.kind == DsoKind.VDSO else None
    return replace(dso, build_id=UNREAD_BUILD if image is None else identity_of(image))


def _is_unchanged(path: Path, since_ns: float) -> bool:
    try:
        return path.stat().st_mtime_ns < since_ns
    except OSError:
        return False


def imported_info(path: Path) -> CaptureInfo:
    """Identity of a run that is known only by its file."""
    variant = "stdin" if path == STANDARD_INPUT else path.stem
    identity = RunIdentity(session="file", variant=variant, round=0, mode=RunMode.IMPORTED)
    is_file = path != STANDARD_INPUT and path.exists()
    changed_at = datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat() if is_file else ""
    return replace(CaptureInfo(identity), source=_shown_name(path), source_changed_at=changed_at)


class _LazyKernelNames:
    """The symbols of the recorded kernel, read when the first kernel frame asks: it takes a noticeable part of a second."""

    def __init__(self, locator: Locator, identity: KernelIdentity) -> None:
        self._locator = locator
        self._identity = identity

    def names(self, addresses: UInt64Column) -> list[str]:
        symbols = self._symbols()
        return symbols.names(addresses) if symbols is not None else [""] * len(addresses)

    def modules(self, addresses: UInt64Column) -> list[str]:
        symbols = self._symbols()
        return symbols.modules(addresses) if symbols is not None else [""] * len(addresses)

    def _symbols(self) -> KernelNames | None:
        identity = self._identity
        return self._locator.kernel_symbols(identity.build_id, identity.release, identity.text_address)
