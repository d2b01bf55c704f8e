"""What a file is, by its first bytes.  The one place that knows."""

from __future__ import annotations

from enum import Enum, auto

from collectors.perf_data import spec
from collectors.perf_data.byte_source import ByteSource
from profiler.errors import FormatError

# Enough of a text for its first sample.
PROBE_BYTES = 4096


class FileKind(Enum):
    """Perf's file and pipe modes; what is compressed as a whole; texts; and what is none of these."""

    PERF_FILE = auto()
    PERF_PIPE = auto()
    GZIP = auto()
    XZ = auto()
    ZSTD = auto()
    TEXT = auto()
    EMPTY = auto()
    OTHER = auto()


WRAPPINGS = frozenset({FileKind.GZIP, FileKind.XZ, FileKind.ZSTD})

_WRAPPING_MAGIC = (
    (b"\x1f\x8b", FileKind.GZIP),
    (b"\xfd7zXZ\0", FileKind.XZ),
    (b"\x28\xb5\x2f\xfd", FileKind.ZSTD),
)
_FOREIGN_MAGIC = (
    (spec.MAGIC_V1, "perf.data of version 1 (before Linux 2.6.36) is not supported; convert it with `perf script`"),
    (spec.MAGIC_V1_SWAPPED, "big-endian perf.data of version 1 is not supported; convert it with `perf script`"),
    (spec.MAGIC_V2_SWAPPED, "recorded on a big-endian machine, which is not supported; convert it with `perf script`"),
    (b"BZh", "compressed with bzip2; decompress it first (bunzip2)"),
    (b"PK\x03\x04", "a zip archive; unpack it first (unzip)"),
    (b"\x7fELF", "an ELF file, not a perf.data recording"),
)
_WAY_OUT = "name the file that `perf record` wrote"
_CONTROL_BYTES = bytes(set(range(0x20)) - set(b"\t\n\r\x1b")) + b"\x7f"
_TAR_MAGIC, _TAR_MAGIC_AT = b"ustar", 257


def file_kind(source: ByteSource) -> FileKind:
    """Decides by content; names and suffixes do not count."""
    start = bytes(source.window(0, PROBE_BYTES))
    if not start:
        return FileKind.EMPTY
    if start.startswith(spec.MAGIC_V2):
        is_pipe = int.from_bytes(start[8:16], "little") == spec.PIPE_HEADER_BYTES
        return FileKind.PERF_PIPE if is_pipe and len(start) >= spec.PIPE_HEADER_BYTES else FileKind.PERF_FILE
    if any(start.startswith(magic) for magic, _ in _FOREIGN_MAGIC):
        return FileKind.OTHER
    wrapping = next((kind for magic, kind in _WRAPPING_MAGIC if start.startswith(magic)), None)
    if wrapping is not None:
        return wrapping
    return FileKind.TEXT if start.translate(None, _CONTROL_BYTES) == start else FileKind.OTHER


def may_be_json(start: bytes) -> bool:
    """Whether a file that starts so may hold a JSON object, perhaps compressed: reason enough to look closer."""
    return start.lstrip().startswith(b"{") or any(start.startswith(magic) for magic, _ in _WRAPPING_MAGIC)


def not_a_recording(source: ByteSource) -> FormatError:
    """The error that says what the file is instead of a recording, and the way out."""
    start = bytes(source.window(0, PROBE_BYTES))
    if not start:
        return FormatError(source.name, "empty file: nothing was recorded")
    for prefix, message in _FOREIGN_MAGIC:
        if start.startswith(prefix):
            return FormatError(source.name, message)
    if start[_TAR_MAGIC_AT:].startswith(_TAR_MAGIC):
        return FormatError(source.name, "a tar archive; unpack it first (tar xf)")
    if file_kind(source) is FileKind.TEXT:
        message = f"a text file; neither `perf script` text nor folded stacks: {_WAY_OUT}"
        return FormatError(source.name, message)
    return FormatError(source.name, f"not a perf.data recording (no PERFILE2 at the start): {_WAY_OUT}")
