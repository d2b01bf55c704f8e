"""What the tests of kills and power cuts stand on: calls that are held, and what a power cut leaves, on programs of a few
lines."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.held_calls import SENDS, Call, CannotHold, Verdict, held_calls
from support.power_cuts import DurableTree

SYNC = """
import os
def sync(path):
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
"""


def run(program: str, directory: Path, judge: Callable[[Call], Verdict]) -> int:
    """The exit code."""
    command = [sys.executable, "-I", "-S", "-c", f"{SYNC}os.chdir({str(directory)!r})\n{program}"]
    try:
        with held_calls(command, judge, os.environ) as process:
            process.communicate(timeout=60)
            return process.returncode
    except CannotHold as error:
        pytest.skip(str(error))


def after_cut(program: str, directory: Path) -> dict[str, bytes]:
    """Files by their paths."""
    tree = DurableTree(directory)

    def judge(call: Call) -> Verdict:
        tree.saw(call)
        return Verdict.GO_ON

    assert run(program, directory, judge) == 0
    cut = tree.cut(directory.with_name("cut"))
    tree.close()
    return {path.relative_to(cut).as_posix(): path.read_bytes() for path in cut.rglob("*") if path.is_file()}


def test_calls_are_seen_in_order_with_their_files(tmp_path: Path) -> None:
    seen: list[Call] = []
    sent: list[bytes] = []

    def judge(call: Call) -> Verdict:
        seen.append(call)
        sent.extend([call.sent] if call.name in SENDS else [])
        return Verdict.GO_ON

    program = """
import socket
open("a", "w").write("x")
os.rename("a", "b")
if os.fork() == 0:
    os.mkdir("c")
    os._exit(0)
os.wait()
one, other = socket.socketpair()
one.send(b"told")
one.sendmsg([b"once", b" more"])
sync("b")
open("b").read()
"""
    assert run(program, tmp_path, judge) == 0
    names = [(call.name, call.path.replace(str(tmp_path), "")) for call in seen]
    assert names[:4] == [("openat", "/a"), ("write", "/a"), ("rename", "/b"), ("mkdir", "/c")]
    assert [name for name, _ in names[4:6]] == ["sendto", "sendmsg"]
    assert sent == [b"told", b"once"]
    assert names[6:] == [("fsync", "/b")]


@pytest.mark.parametrize(
    ("last", "left"), [("openat", {}), ("write", {"a": b""}), ("rename", {"a": b"x"}), ("mkdir", {"b": b"x"})]
)
def test_what_is_killed_at_a_call_has_not_done_it(tmp_path: Path, last: str, left: dict[str, bytes]) -> None:
    program = "file = open('a', 'wb', buffering=0)\nfile.write(b'x')\nos.rename('a', 'b')\nos.mkdir('c')"
    code = run(program, tmp_path, lambda call: Verdict.KILL if call.name == last else Verdict.GO_ON)
    assert code == -signal.SIGKILL
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == left


def test_what_the_judge_raises_is_raised(tmp_path: Path) -> None:
    def judge(call: Call) -> Verdict:
        raise ValueError(call.name)

    with pytest.raises(ValueError, match=r"^mkdir$"):
        run("os.mkdir('c')", tmp_path, judge)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("program", "left"),
    [
        ("open('new', 'w').write('x')", {"old": b"old"}),
        ("open('new', 'w').write('x')\nsync('new')", {"old": b"old"}),
        ("open('new', 'w').write('x')\nsync('.')", {"old": b"old", "new": b""}),
        ("open('new', 'w').write('x')\nsync('new')\nsync('.')", {"old": b"old", "new": b"x"}),
        ("open('old', 'w').write('x')", {"old": b"old"}),
        ("open('old', 'w').write('x')\nsync('old')\nopen('old', 'w').write('y')", {"old": b"x"}),
        ("os.unlink('old')", {"old": b"old"}),
        ("os.unlink('old')\nsync('.')", {}),
        ("os.rename('old', 'new')", {"old": b"old"}),
        ("os.rename('old', 'new')\nsync('.')", {"new": b"old"}),
        ("os.mkdir('d')\nopen('d/new', 'w').write('x')\nsync('d/new')\nsync('d')", {"old": b"old"}),
        ("os.mkdir('d')\nopen('d/new', 'w').write('x')\nsync('d/new')\nsync('d')\nsync('.')", {"old": b"old", "d/new": b"x"}),
        # Another file, which may get the number of the first.
        ("os.unlink('old')\nopen('new', 'w').write('x')\nsync('.')", {"new": b""}),
    ],
)
def test_a_power_cut_leaves_what_was_synced(tmp_path: Path, program: str, left: dict[str, bytes]) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk/old").write_text("old")
    assert after_cut(program, tmp_path / "disk") == left
