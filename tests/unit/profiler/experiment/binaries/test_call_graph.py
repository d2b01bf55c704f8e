"""Which call graph is recorded, and the reason given."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from profiler.errors import FormatError, UsageError
from profiler.experiment.binaries.call_graph import CallGraph, choose_call_graph
from profiler.experiment.binaries.program_facts import keeps_frame_pointers
from profiler.experiment.binaries.shared_objects import SharedObject, SharedObjects
from profiler.experiment.plan.call_graph_request import CallGraphRequest, parse_call_graph


class FakeObjects(SharedObjects):
    def __init__(self, *found: SharedObject) -> None:
        super().__init__({})
        self.found = found

    def closure(self, executable: Path):  # type: ignore[no-untyped-def]
        return iter(self.found)


LIBC = SharedObject("libc.so.6", Path("/lib/libc.so.6"))
LOST = SharedObject("liblost.so", None)


def choose(kept: set[str], *objects: SharedObject) -> CallGraph:
    return choose_call_graph(CallGraphRequest(), Path("/opt/prog"), FakeObjects(*objects), lambda path: path.name in kept)


def test_frame_pointers_only_when_everything_keeps_them() -> None:
    assert choose({"prog", "libc.so.6"}, LIBC).mode == "fp"
    assert choose({"prog"}).mode == "fp"
    assert choose({"prog"}, LIBC) == CallGraph("dwarf", 16384, "libc.so.6 does not keep frame pointers")
    assert choose({"libc.so.6"}, LIBC) == CallGraph("dwarf", 16384, "prog does not keep frame pointers")
    assert "liblost.so was not found" in choose({"prog"}, LOST).reason


def test_program_that_cannot_be_read_gets_stack_dumps() -> None:
    def refuse(path: Path) -> bool:
        raise FormatError(str(path), "not an ELF file")

    chosen = choose_call_graph(CallGraphRequest(), Path("/opt/script"), FakeObjects(), refuse)
    assert chosen == CallGraph("dwarf", 16384, "script: not an ELF file")


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ("auto", CallGraphRequest("auto", 16384)),
        ("fp", CallGraphRequest("fp", 16384)),
        ("dwarf", CallGraphRequest("dwarf", 16384)),
        ("dwarf,8192", CallGraphRequest("dwarf", 8192)),
        ("dwarf,65528", CallGraphRequest("dwarf", 65528)),
        ("none", CallGraphRequest("none", 16384)),
    ],
)
def test_requests(text: str, request_: CallGraphRequest) -> None:
    assert parse_call_graph(text) == request_


@pytest.mark.parametrize("text", ["", "frame", "fp,8192", "dwarf,", "dwarf,x", "dwarf,0", "dwarf,65536", "dwarf,100"])
def test_requests_that_perf_would_refuse(text: str) -> None:
    with pytest.raises(UsageError, match="--call-graph"):
        parse_call_graph(text)


def test_what_was_asked_for_is_taken() -> None:
    asked = choose_call_graph(CallGraphRequest("fp"), Path("/x"), FakeObjects(), lambda _: False)
    assert asked == CallGraph("fp", 0, "asked for")


def test_static_program_with_frame_pointers(tmp_path: Path) -> None:
    """No shared objects at all; its own code with and without frame pointers, no library code linked in."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    lines = [
        f"__attribute__((noinline)) int f{i}(int x) {{ volatile int a[8]; a[x & 7] = x; return f{i + 1}(x + a[0]) + 1; }}"
        for i in range(40)
    ]
    declared = "".join(f"int f{i}(int);" for i in range(41))
    source = declared + "\n".join(lines) + "int f40(int x) { return x; } void _start(void) { f0(1); for (;;); }"
    (tmp_path / "p.c").write_text(source)
    for name, option in (("with", "-fno-omit-frame-pointer"), ("without", "-fomit-frame-pointer")):
        build = ["gcc", "-O1", option, "-static", "-nostdlib", "-fno-optimize-sibling-calls", "-o", name, "p.c"]
        subprocess.run(build, cwd=tmp_path, check=True)
    chosen = {
        name: choose_call_graph(CallGraphRequest(), tmp_path / name, SharedObjects({}), keeps_frame_pointers).mode
        for name in ("with", "without")
    }
    assert chosen == {"with": "fp", "without": "dwarf"}
