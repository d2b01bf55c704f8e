"""A process that waits and then becomes the program.  Executed by its file name with ``python -I -S``, never imported.

    gate.py GATE REPORT PARENT CPUS PROGRAM ARGUMENT0 [ARGUMENT ...]

Reads descriptor GATE to its end: 8 bytes length and that many bytes of environment, ``NAME=value`` each with a zero byte
behind.  Anything shorter means that slotscope went away.  Then writes ``BEFORE_EXEC`` to descriptor REPORT, which the exec
closes; a failed exec adds its errno.

A fork of slotscope itself would hand on slotscope's large address space, and taking that down belongs to the program's own
CPU time: about 2 ms of it, against 0.5 ms here.  The environment comes through the pipe because an interpreter may change its
own.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import struct
import sys
import time

# Monotonic ns, user s, system s, minor and major faults, voluntary and involuntary switches, all up to the exec.
BEFORE_EXEC = struct.Struct("<qddqqqq")
ERRNO = struct.Struct("<i")
ENVIRONMENT_BYTES = struct.Struct("<q")
_PR_SET_PDEATHSIG = 1


def pack_environment(environment: dict[bytes, bytes]) -> bytes:
    """What is written to the gate to open it."""
    block = b"".join(name + b"=" + value + b"\0" for name, value in environment.items())
    return ENVIRONMENT_BYTES.pack(len(block)) + block


def _main(argv: list[str]) -> None:
    gate, report, parent = (int(number) for number in argv[:3])
    cpus, program, *arguments = argv[3:]
    # The program dies with slotscope, even when that is killed; the check closes the race with a parent already gone.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return
    if cpus:
        os.sched_setaffinity(0, {int(cpu) for cpu in cpus.split(",")})
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # the interpreter ignores them, and an exec would hand that on
        signal.signal(number, signal.SIG_DFL)
    os.set_inheritable(report, False)
    environment = _wait(gate)
    if environment is None:
        return
    os.close(gate)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    counts = (usage.ru_minflt, usage.ru_majflt, usage.ru_nvcsw, usage.ru_nivcsw)
    os.write(report, BEFORE_EXEC.pack(time.monotonic_ns(), usage.ru_utime, usage.ru_stime, *counts))
    try:
        os.execve(program, arguments, environment)
    except OSError as error:
        os.write(report, ERRNO.pack(error.errno or 0))


def _wait(gate: int) -> dict[bytes, bytes] | None:
    data = b""
    while chunk := os.read(gate, 1 << 16):
        data += chunk
    start = ENVIRONMENT_BYTES.size
    if len(data) < start or len(data) - start != ENVIRONMENT_BYTES.unpack_from(data)[0]:
        return None
    pairs = (entry.partition(b"=") for entry in data[start:].split(b"\0")[:-1])
    return {name: value for name, _, value in pairs}


if __name__ == "__main__":
    _main(sys.argv[1:])
    os._exit(127)
