"""Recordings on disk into captures: opens the file and finds what ingesting needs of this host."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Protocol

from collectors.ingest.frame_builder import KernelNames
from collectors.ingest.ingest import ImageSource, IngestEnvironment, ingest_indexed
from collectors.ingest.kernel_identity import KernelIdentity, kernel_identity
from collectors.perf_data.reader import open_recording
from profiler.errors import FormatError
from profiler.model.arrays import UInt64Column
from profiler.model.capture import Capture
from profiler.model.run import CaptureInfo, RunIdentity, RunMode


class Locator(ImageSource, Protocol):
    """What this host offers: binaries, and the symbols of its kernel (``symbolize.locate.Locator``)."""

    def kernel_symbols(self, build_id: bytes, release: str, text_address: int) -> KernelNames | None:
        """Symbols of the running kernel if it is this one."""


def read_recording(path: Path, info: CaptureInfo | None, locator: Locator) -> Capture:
    """The capture of a perf.data file.

    Without ``info`` the run is named after the file (session "file", mode IMPORTED).  Names of kernel frames come from the
    running kernel when it is the one that was recorded.  ``FormatError`` for files that cannot be read or are no recordings.
    """
    name = str(path)
    if path.is_dir():
        message = "a directory (perf record --threads), which is not supported yet; record without --threads"
        raise FormatError(name, message)
    try:
        stream = path.open("rb")
    except OSError as error:
        raise FormatError(name, f"cannot be opened: {error.strerror}") from error
    with stream:
        recording = open_recording(stream, name)
        index = recording.index()
        kernel = _LazyKernelNames(locator, kernel_identity(recording.features, index.side_band))
        environment = IngestEnvironment(images=locator, kernel=kernel)
        return ingest_indexed(recording, index, info or imported_info(path), environment)


def imported_info(path: Path) -> CaptureInfo:
    """Identity of a run that is known only by its file."""
    identity = RunIdentity(session="file", variant=path.stem, round=0, mode=RunMode.IMPORTED)
    return replace(CaptureInfo(identity), source=str(path))


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
