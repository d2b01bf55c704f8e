"""Text of `perf script` with its default fields, read by tests.

A sample is a line ``comm [pid/]tid [cpu] time: period event:``, followed by a line per frame or ending in its only address.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

_HEAD = re.compile(r"^\s*(\S.*?)\s+(?:(-?\d+)/)?(-?\d+)\s+(?:\[(\d+)\]\s+)?(\d+)\.(\d{9}):\s+(?:(\d+)\s+)?(\S+):(?:\s+(.*))?$")
_FRAME = re.compile(r"([0-9a-f]+)(?: \S.*\+0x[0-9a-f]+| \S+)? \((.*)\)$")
_MODULE = re.compile(r"^/lib/modules/.*/([^/]+)\.ko(?:\.\w+)?$")
# perf ends some unwound stacks with it.
BAD_ADDRESS = 2**64 - 1

Frame = tuple[str, int]


@dataclass
class PrintedSample:
    """``cpu`` and ``pid`` -1 and ``period`` 0 where the line has none.  ``frames``: (DSO, address) innermost first, DSOs named
    as by slotscope; addresses are file offsets in stacks, runtime addresses where ``is_single``."""

    comm: str
    tid: int
    cpu: int
    time_ns: int
    period: int
    event: str
    is_single: bool
    frames: list[Frame] = field(default_factory=list)
    pid: int = -1

    def head(self) -> tuple[str, int, int, int, int, str]:
        return (self.comm, self.tid, self.cpu, self.time_ns, self.period, self.event)

    def sort_key(self) -> tuple[int, int, str, int]:
        """perf prints samples of one moment in an order of its own."""
        return (self.time_ns, self.tid, self.event, len(self.frames))


def printed_samples(lines: Iterable[str]) -> Iterator[PrintedSample]:
    """All samples in the order of the text; lines of inlined functions are passed over.  ``ValueError`` for other lines."""
    current: PrintedSample | None = None
    for line in (line.rstrip("\n") for line in lines):
        if line.startswith("\t"):
            if current is None:
                raise ValueError(f"a frame before the first sample: {line}")
            if not line.endswith("(inlined)"):
                current.frames.append(_frame(line.strip()))
        elif line.strip():
            if current is not None:
                yield current
            current = _head(line)
    if current is not None:
        yield current


def _head(line: str) -> PrintedSample:
    match = _HEAD.match(line)
    if match is None:
        raise ValueError(f"no sample line: {line}")
    comm, pid, tid, cpu, seconds, nanoseconds, period, event, rest = match.groups()
    time_ns = int(seconds) * 10**9 + int(nanoseconds)
    frame = _FRAME.search(rest or "")
    sample = PrintedSample(comm, int(tid), int(cpu or -1), time_ns, int(period or 0), event, frame is not None)
    sample.pid = int(pid or -1)
    if frame is not None:
        sample.frames.append(_frame(frame[0]))
    return sample


def _frame(text: str) -> Frame:
    match = _FRAME.match(text)
    if match is None:
        raise ValueError(f"no frame: {text}")
    return dso_name(match[2]), int(match[1], 16)


def dso_name(printed: str) -> str:
    """perf's name of a DSO as slotscope has it: one name for the kernel, modules by name, JIT code as the memory it is in."""
    if printed in ("[kernel.kallsyms]", "[guest.kernel.kallsyms]"):
        return "[kernel]" if printed == "[kernel.kallsyms]" else "[guest]"
    module = _MODULE.match(printed)
    if module:
        return f"[{module[1].replace('-', '_')}]"
    if re.fullmatch(r"/tmp/perf-\d+\.map", printed):
        return "//anon"
    return printed.removesuffix(" (deleted)")
