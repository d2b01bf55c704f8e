"""Recordings in directories (`perf record --threads`): ``data`` has the header and side band, ``data.0`` ... have records.

Source: ``tools/perf/Documentation/perf.data-directory-format.txt``.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from collectors.perf_data import spec
from collectors.perf_data.byte_source import ByteSource, Section
from collectors.perf_data.compressed_records import append_records
from collectors.perf_data.expansion import Expansion, Progress
from collectors.perf_data.file_header import parse_file_header
from collectors.perf_data.file_mode import file_records
from collectors.perf_data.record_stream import RecordStream
from collectors.perf_data.record_walk import RecordWalk
from profiler.errors import FormatError

MAIN_FILE = "data"


def is_recording_directory(path: Path) -> bool:
    """Whether the directory is one recording, not a folder of recordings."""
    try:
        with (path / MAIN_FILE).open("rb") as stream:
            return stream.read(len(spec.MAGIC_V2)) == spec.MAGIC_V2
    except OSError:
        return False


def open_directory(path: Path, progress: Progress) -> RecordStream:
    """All files of the directory, the main one first, then by number.  ``FormatError`` names the file that is wrong."""
    if not is_recording_directory(path):
        raise FormatError(str(path), "a directory without a recording in it: name the file that `perf record` wrote")
    out = Expansion(str(path), "all files as plain records", progress)
    try:
        main = _append_main(path / MAIN_FILE, out)
        cut = [_append_part(part, out) for part in _parts(path)]
        records = out.finish()
    except BaseException:
        out.close()
        raise
    is_unfinished = main.is_unfinished or any(cut)
    return RecordStream(records, Section(0, records.size), is_unfinished, main.attributes, main.features)


def _parts(path: Path) -> list[Path]:
    parts = [part for part in path.glob(f"{MAIN_FILE}.*") if part.suffix[1:].isdecimal() and part.is_file()]
    return sorted(parts, key=lambda part: int(part.suffix[1:]))


def _append_main(path: Path, out: Expansion) -> RecordStream:
    with contextlib.closing(path.open("rb")) as stream:
        source = ByteSource(stream, str(path))
        main = file_records(source, parse_file_header(source))
        is_cut = _append(source, main.extent, main.is_unfinished, out)
    return RecordStream(main.source, main.extent, main.is_unfinished or is_cut, main.attributes, main.features)


def _append_part(path: Path, out: Expansion) -> bool:
    """Whether the file ends inside a record, as it does when perf was killed."""
    try:
        stream = path.open("rb")
    except OSError as error:
        raise FormatError(str(path), f"cannot be opened: {error.strerror}") from error
    with stream:
        source = ByteSource(stream, str(path))
        return _append(source, Section(0, source.size), True, out)


def _append(source: ByteSource, extent: Section, may_be_cut: bool, out: Expansion) -> bool:
    walk = RecordWalk(source, extent)
    _, is_record_cut = append_records(walk, source, out)
    if not walk.is_complete and (walk.is_damaged or not may_be_cut):
        raise walk.complaint()
    return is_record_cut or not walk.is_complete
