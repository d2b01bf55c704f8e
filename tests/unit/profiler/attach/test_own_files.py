"""Which builds a process of another root directory has mapped, from one look to the next."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from collectors.processes.process_status import status_of
from collectors.targets.mapped_files import MappedFile, RootIdentity
from profiler.attach import own_files
from profiler.attach.own_files import OwnFiles
from support.elf_programs import compile_program, load_image
from symbolize.image_file import open_image
from symbolize.locate import Locator

SOURCE = "int main(void) {{ return {}; }}\n"


def test_a_file_that_got_the_number_of_the_one_before_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As file systems give it to the next file at once: here it is the same file, with another content."""
    builds = [compile_program(tmp_path, f"{value}.c", SOURCE.format(value), ["-Wl,--build-id"]) for value in (1, 2)]
    program = tmp_path / "server"
    pid, read = os.getpid(), []
    mapped = (MappedFile(pid, str(program), "08:01 77", tmp_path / "no-link"),)

    def seen_reading(path: Path) -> Any:
        read.append(path)
        return open_image(path)

    monkeypatch.setattr(own_files, "root_identity", lambda whose: RootIdentity(f"mnt:[{whose}]", 1, 2))
    monkeypatch.setattr(own_files, "_mapped", lambda _: mapped)
    monkeypatch.setattr(own_files, "open_image", seen_reading)
    target: Any = SimpleNamespace(pid=pid, name="server", members=lambda: (status_of(pid),))
    files = OwnFiles(Locator())
    for build in builds:
        program.write_bytes(build.read_bytes())
        for _ in range(3):
            found = files.look(target)
            assert found is not None
            assert found.build_ids == {(pid, str(program)): load_image(build).build_id}
    assert [path.name for path in read] == ["no-link", "server"] * 2
