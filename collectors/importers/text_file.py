"""Text files into captures, whichever of the known formats they hold."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from typing import BinaryIO

from collectors.importers.folded import is_folded, read_folded
from collectors.importers.perf_script.reader import is_perf_script, read_perf_script
from collectors.importers.pyspy_raw import is_pyspy_raw, read_pyspy_raw
from collectors.importers.pyspy_speedscope import is_speedscope, read_pyspy_speedscope
from collectors.perf_data.byte_source import ByteSource
from collectors.perf_data.file_wrapping import PlainFile
from profiler.model.capture import Capture
from profiler.model.run import CaptureInfo

TextReader = Callable[[BinaryIO, str, CaptureInfo], Capture]

# Enough for the first samples behind a long header.
_SNIFFED_BYTES = 1 << 16
_FORMATS: tuple[tuple[Callable[[bytes], bool], TextReader], ...] = (
    (is_speedscope, read_pyspy_speedscope),
    (is_perf_script, read_perf_script),
    (is_pyspy_raw, read_pyspy_raw),
    (is_folded, read_folded),
)


def text_reader(source: ByteSource) -> TextReader | None:
    """What reads this text, ``None`` when it is of no known format."""
    head = bytes(source.window(0, _SNIFFED_BYTES))
    return next((read for is_format, read in _FORMATS if is_format(head)), None)


def read_text(plain: PlainFile, info: CaptureInfo, read: TextReader) -> Capture:
    """The capture of a text, of which some memory is held at a time.  ``FormatError`` as ``read`` says."""
    capture = read(io.BufferedReader(_SourceStream(plain.source), _SNIFFED_BYTES), plain.source.name, info)
    if not plain.is_cut:
        return capture
    notes = (*capture.quality.notes, "the compressed file ends in the middle; what could be read was used")
    return replace(capture, quality=replace(capture.quality, is_unfinished=True, notes=notes))


class _SourceStream(io.RawIOBase):
    """The bytes of a source in order."""

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._position = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        piece = self._source.window(self._position, len(buffer))
        buffer[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)
