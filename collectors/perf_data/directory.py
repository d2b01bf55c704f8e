"""Recordings in directories (`perf record --threads`): ``data`` has the header and side band, ``data.0`` ... have records.

Source: ``tools/perf/Documentation/perf.data-directory-format.txt``.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

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
    """Whether the directory is one recording, not a folder of recordings one of which is called ``data``."""
    try:
        with (path / MAIN_FILE).open("rb") as stream:
            has_magic = stream.read(len(spec.MAGIC_V2)) == spec.MAGIC_V2
        is_alone = all(entry.name == MAIN_FILE or not entry.is_file() for entry in path.iterdir())
        return has_magic and (is_alone or bool(_parts(path)))
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
    with _opened(path) as stream:
        source = ByteSource(stream, str(path))
        main = file_records(source, parse_file_header(source))
        walk = RecordWalk(source, main.extent)
        _, is_record_cut = append_records(walk, source, out)
        if not walk.is_complete and not main.is_unfinished:
            raise walk.complaint()
    return RecordStream(source, main.extent, main.is_unfinished or is_record_cut, main.attributes, main.features)


def _append_part(path: Path, out: Expansion) -> bool:
    """Whether the file ends inside a record, as it does when perf was killed."""
    with _opened(path) as stream:
        source = ByteSource(stream, str(path))
        walk = RecordWalk(source, Section(0, source.size))
        _, is_record_cut = append_records(walk, source, out)
        if walk.is_damaged:
            raise walk.complaint()
        return is_record_cut or not walk.is_complete


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise FormatError(str(path), f"cannot be opened: {error.strerror}") from error
