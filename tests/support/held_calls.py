"""System calls by which a process changes files or sends, each held by the kernel until the test has seen it.

The kernel (5.9 or later) asks through seccomp's user notification: the program needs no hook, its threads and children are
asked about too, and what is killed at a call has not done it.  As a program, ``held_calls.py SOCKET COMMAND...`` puts itself
under the filter, lets its parent take the listener over, and becomes the command.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import platform
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import IO

# Number, and which arguments are a descriptor, a path, and the descriptor of the directory that a path starts in.
_CALLS = {
    "write": 1,
    "pwrite64": 18,
    "sendto": 44,
    "sendmsg": 46,
    "fsync": 74,
    "fdatasync": 75,
    "ftruncate": 77,
    "rename": 82,
    "mkdir": 83,
    "rmdir": 84,
    "link": 86,
    "unlink": 87,
    "openat": 257,
    "mkdirat": 258,
    "unlinkat": 263,
    "renameat": 264,
    "linkat": 265,
    "renameat2": 316,
}
_NAMES = {number: name for name, number in _CALLS.items()}
_ON_DESCRIPTOR = frozenset({"write", "pwrite64", "sendto", "sendmsg", "fsync", "fdatasync", "ftruncate"})
SYNCS, SENDS = frozenset({"fsync", "fdatasync"}), frozenset({"sendto", "sendmsg"})
# Where the path stands that is made, changed or removed: (argument of the directory or -1, argument of the path).
_PATHS = {"rename": (-1, 1), "link": (-1, 1), "renameat": (2, 3), "linkat": (2, 3), "renameat2": (2, 3)}
_AT_FDCWD = (1 << 32) - 100
_LONGEST_PATH = 4096

# linux/seccomp.h, linux/filter.h, linux/audit.h
_SECCOMP, _PIDFD_GETFD = 317, 438
_SET_NO_NEW_PRIVS, _SET_MODE_FILTER, _NEW_LISTENER = 38, 1, 8
_RECEIVE, _ANSWER, _GO_ON = 0xC0502100, 0xC0182101, 1
_ALLOW, _ASK = 0x7FFF0000, 0x7FC00000
_LOAD, _IF_EQUAL, _IF_SET, _RETURN = 0x20, 0x15, 0x45, 0x06
_X86_64 = 0xC000003E
_AT_NUMBER, _AT_ARCHITECTURE, _AT_THIRD_ARGUMENT = 0, 4, 32
_LISTENER = 900  # its descriptor until the parent has it


class Verdict(Enum):
    """What becomes of a call: it is done, or its process is killed with SIGKILL before."""

    GO_ON = "go on"
    KILL = "kill"


@dataclass(frozen=True, slots=True)
class Call:
    """One that has not been done yet.  ``thread``: who wants it.  ``descriptor``: what it is done with, -1 where it takes a
    path.  ``path``: of the file that is changed or synced, or the kernel's name of a pipe or socket."""

    thread: int
    name: str
    descriptor: int
    path: str
    arguments: tuple[int, ...]

    @property
    def file(self) -> Path:
        """What the descriptor leads to, whatever has become of its name."""
        return Path(f"/proc/{self.thread}/fd/{self.descriptor}")

    @property
    def sent(self) -> bytes:
        """What a call of ``SENDS`` sends; of one that gathers it from several places what lies in the first."""
        if self.name == "sendto":
            return _memory(self.thread, self.arguments[1], self.arguments[2])
        assert self.name == "sendmsg"
        (places,) = struct.unpack_from("@Q", _memory(self.thread, self.arguments[1], 24), 16)
        return _memory(self.thread, *struct.unpack("@QQ", _memory(self.thread, places, 16)))


Judge = Callable[[Call], Verdict]


class CannotHold(Exception):
    """This machine does not let calls be held; the text says why."""


@contextlib.contextmanager
def held_calls(command: Sequence[str], judge: Judge, environment: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    """The command's process, in a session of its own, its standard input and output piped; killed at the end.

    ``judge`` is called in a thread of its own, for one call at a time.  What it raises kills the caller of the call, and is
    raised here at the end.  ``CannotHold``.
    """
    if platform.machine() != "x86_64":
        raise CannotHold(f"system calls of {platform.machine()} are not known here")
    ours, theirs = socket.socketpair()
    with ours, theirs:
        launch = [sys.executable, "-I", "-S", __file__, str(theirs.fileno()), *command]
        process = subprocess.Popen(
            launch,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=dict(environment),
            pass_fds=(theirs.fileno(),),
            start_new_session=True,
        )
        theirs.close()
        reason = ours.recv(1000).decode()
        try:
            listener = -1 if reason else _taken_from(process.pid, _LISTENER)
        except OSError as error:
            reason = f"the listener for held calls cannot be taken over: {error.strerror}"
        if reason:
            process.kill()
            process.communicate()
            raise CannotHold(reason)
    keeper = _Keeper(listener, judge)
    keeper.start()
    try:
        yield process
    finally:
        if process.poll() is None:  # with whatever it has started
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout):
            _close(stream)
        keeper.join(30)
        assert not keeper.is_alive(), "something that was held did not end"
    if keeper.error is not None:
        raise keeper.error


class _Keeper(threading.Thread):
    def __init__(self, listener: int, judge: Judge) -> None:
        super().__init__(name="held calls")
        self._listener = listener
        self._judge = judge
        self.error: BaseException | None = None

    def run(self) -> None:
        """Until nothing is left that could be held."""
        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        while True:
            ((_, events),) = poll.poll()
            if events & select.POLLIN:
                self._hear()
            elif events & select.POLLHUP:
                os.close(self._listener)
                return

    def _hear(self) -> None:
        asked = bytearray(80)
        try:
            fcntl.ioctl(self._listener, _RECEIVE, asked)
        except FileNotFoundError:  # killed meanwhile
            return
        identifier, thread, _, number, *_ = struct.unpack_from("=QIIiIQ", asked)
        arguments = struct.unpack_from("=6Q", asked, 32)
        try:
            verdict = self._judge(_call(thread, _NAMES[number], arguments))
        except FileNotFoundError:
            if Path(f"/proc/{thread}").exists():
                raise
            return  # killed while it was looked at
        except BaseException as error:  # noqa: BLE001 -- raised by whoever holds the calls
            self.error, verdict = self.error or error, Verdict.KILL
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            if verdict is Verdict.KILL:
                os.kill(thread, signal.SIGKILL)
            else:
                fcntl.ioctl(self._listener, _ANSWER, struct.pack("=QqiI", identifier, 0, 0, _GO_ON))


def _call(thread: int, name: str, arguments: tuple[int, ...]) -> Call:
    if name in _ON_DESCRIPTOR:
        descriptor = arguments[0]
        return Call(thread, name, descriptor, os.readlink(f"/proc/{thread}/fd/{descriptor}"), arguments)
    directory, path = _PATHS.get(name, (0, 1) if name.endswith("at") else (-1, 0))
    text = _memory(thread, arguments[path], _LONGEST_PATH).partition(b"\0")[0].decode("utf-8", "surrogateescape")
    at = arguments[directory] & 0xFFFFFFFF if directory >= 0 else _AT_FDCWD
    base = os.readlink(f"/proc/{thread}/cwd" if at == _AT_FDCWD else f"/proc/{thread}/fd/{at}")
    return Call(thread, name, -1, os.path.join(base, text), arguments)


def _memory(thread: int, address: int, size: int) -> bytes:
    """Fewer bytes at the end of what is mapped."""
    with open(f"/proc/{thread}/mem", "rb", buffering=0) as memory:
        memory.seek(address)
        first = memory.read(min(size, 4096 - address % 4096))
        try:
            return first + memory.read(size - len(first))
        except OSError:
            return first


def _taken_from(process: int, descriptor: int) -> int:
    holder = os.pidfd_open(process)
    try:
        taken = _system_call(_PIDFD_GETFD, holder, descriptor, 0)
        os.set_inheritable(taken, False)
        return taken
    finally:
        os.close(holder)


def _system_call(number: int, *arguments: object) -> int:
    found = int(ctypes.CDLL(None, use_errno=True).syscall(number, *arguments))
    if found < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return found


def _close(stream: IO[str] | None) -> None:
    if stream is not None:
        stream.close()


def _filter() -> bytes:
    """Asks about the calls above, about ``openat`` only where it may make a file."""

    def step(code: int, value: int, if_not: int = 0) -> bytes:
        return struct.pack("=HBBI", code, 0, if_not, value)

    steps = [step(_LOAD, _AT_ARCHITECTURE), struct.pack("=HBBI", _IF_EQUAL, 1, 0, _X86_64), step(_RETURN, _ALLOW)]
    steps.append(step(_LOAD, _AT_NUMBER))
    for name, number in _CALLS.items():
        if name != "openat":
            steps += [step(_IF_EQUAL, number, 1), step(_RETURN, _ASK)]
    steps += [step(_IF_EQUAL, _CALLS["openat"], 3), step(_LOAD, _AT_THIRD_ARGUMENT), step(_IF_SET, os.O_CREAT, 1)]
    return b"".join([*steps, step(_RETURN, _ASK), step(_RETURN, _ALLOW)])


def _hold_this_process() -> None:
    """From here on; its listener gets its descriptor.  ``OSError``."""
    library, code = ctypes.CDLL(None, use_errno=True), _filter()
    if library.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    steps = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("@HxxxxxxQ", len(code) // 8, ctypes.addressof(steps))
    listener = _system_call(_SECCOMP, _SET_MODE_FILTER, _NEW_LISTENER, program)
    os.dup2(listener, _LISTENER, inheritable=False)
    os.close(listener)


def _become(parent: socket.socket, command: list[str]) -> None:
    try:
        _hold_this_process()
    except OSError as error:
        parent.send(f"calls cannot be held here: {error.strerror}".encode())
        sys.exit(1)
    # Anything that is written now would be held, and nobody listens yet.
    parent.shutdown(socket.SHUT_WR)
    parent.recv(1)
    os.execv(command[0], command)


if __name__ == "__main__":
    _become(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])
