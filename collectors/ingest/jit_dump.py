"""jitdump files, in which a compiler in the process says what code it made
(tools/perf/Documentation/jitdump-specification.txt of Linux)."""

from __future__ import annotations

import re
import struct
from typing import BinaryIO

import numpy as np

from collectors.ingest.jit_names import CodeMap
from collectors.perf_data.side_band import SideBand

MAGIC = 0x4A695444  # "JiTD" in the byte order of the machine
VERSION = 1
CODE_LOAD, CODE_MOVE = 0, 1

_HEADER = struct.Struct("<IIIIIIQQ")  # magic, version, size, machine, padding, pid, time stamp, flags
_RECORD = struct.Struct("<IIQ")  # type, size with this, time stamp
_LOAD = struct.Struct("<IIQQQQ")  # pid, tid, virtual address, code address, code size, code number
_MOVE = struct.Struct("<IIQQQQQ")  # pid, tid, virtual address, old address, new address, code size, code number
_LONGEST_NAME = 4096
_FILE_NAME = re.compile(r"/jit-\d+\.dump$")


def dump_paths(side_band: SideBand) -> dict[int, str]:
    """The jitdump file of each process: it is mapped once, so that a recording holds its name."""
    return {record.pid: record.path for record in side_band.mmaps if _FILE_NAME.search(record.path)}


def parse_jit_dump(stream: BinaryIO, pid: int) -> CodeMap:
    """The code of a process in the order of the file, without the code itself.

    Empty for a file of another process, byte order or version; what follows a damaged record is left out: the process may have
    been ended while it wrote.
    """
    starts: list[int] = []
    sizes: list[int] = []
    names: list[str] = []
    name_of: dict[int, str] = {}
    position = _first_record(stream, pid)
    while position:
        stream.seek(position)
        head = stream.read(_RECORD.size + _MOVE.size + _LONGEST_NAME)
        if len(head) < _RECORD.size:
            break
        kind, size, _ = _RECORD.unpack_from(head)
        body = head[_RECORD.size : size]
        if kind == CODE_LOAD and len(body) > _LOAD.size:
            _, _, _, start, length, number = _LOAD.unpack_from(body)
            name_of[number] = body[_LOAD.size :].partition(b"\0")[0].decode("utf-8", "surrogateescape")
        elif kind == CODE_MOVE and len(body) >= _MOVE.size:
            _, _, _, _, start, length, number = _MOVE.unpack_from(body)
        else:
            start, length, number = 0, 0, -1
        if name_of.get(number) and length and start + length < 1 << 64:
            starts.append(start)
            sizes.append(length)
            names.append(name_of[number])
        position = position + size if size >= _RECORD.size else 0
    return CodeMap(np.array(starts, np.uint64), np.array(sizes, np.uint64), tuple(names))


def _first_record(stream: BinaryIO, pid: int) -> int:
    """Where the first record begins, 0 for a file that cannot be used."""
    header = stream.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return 0
    magic, version, size, _, _, own_pid, _, _ = _HEADER.unpack(header)
    is_usable = (magic, version, own_pid) == (MAGIC, VERSION, pid) and size >= _HEADER.size
    return int(size) if is_usable else 0
