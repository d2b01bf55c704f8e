"""ELF headers as pyelftools reads them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from symbolize.elf.layout import read_layout

SYSTEM_FILES = [
    sys.executable,
    "/bin/ls",
    "/lib/x86_64-linux-gnu/libc.so.6",
    "/lib64/ld-linux-x86-64.so.2",
    "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
]


@pytest.mark.parametrize("path", SYSTEM_FILES, ids=lambda path: Path(path).name)
def test_headers_equal_pyelftools(path: str) -> None:
    if not Path(path).exists():
        pytest.skip(f"{path} is not on this machine")
    data = Path(path).read_bytes()
    layout = read_layout(memoryview(data), path)
    with Path(path).open("rb") as stream:
        file = ELFFile(stream)
        assert layout.entry_address == file.header["e_entry"]
        expected_segments = [
            (s["p_offset"], s["p_vaddr"], s["p_filesz"], s["p_memsz"], bool(s["p_flags"] & 1)) for s in file.iter_segments()
        ]
        expected_sections = [
            (s.name, s["sh_addr"], s["sh_offset"], s["sh_size"], s["sh_flags"], s["sh_link"], s["sh_entsize"])
            for s in file.iter_sections()
        ]
    assert len(expected_segments) > 4
    assert [
        (s.file_offset, s.link_address, s.file_size, s.memory_size, s.is_executable) for _, s in layout.segments
    ] == expected_segments
    assert [
        (s.name, s.link_address, s.file_offset, s.size, s.flags, s.link, s.entry_size) for s in layout.sections
    ] == expected_sections
