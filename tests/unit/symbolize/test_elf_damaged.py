"""Public collections of odd and damaged ELF files: every reader gives a value or a FormatError, and every file is finished."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from profiler.errors import FormatError
from support.elf_programs import compile_program
from symbolize.binary_facts import binary_facts
from symbolize.elf.image import ElfImage, parse_image
from symbolize.elf.symbol_table import parse_symbol_table
from symbolize.unwind.unwinder import Unwinder

FOLDERS = [
    "google+bloaty",
    "eliben+pyelftools",
    "elfutils-0.188",
    "gimli-rs+object-testfiles",
    "gimli-rs+object",
    "libbpf+blazesym",
    "getsentry+symbolic",
    "mstange+framehop",
    "koute+not-perf",
    "gimli-rs+addr2line",
    "mozilla+dump_syms",
]
SOURCE = r"""
#include <string>
#include <vector>
__attribute__((noinline)) int size(std::vector<std::string> v) { v.push_back("x"); return v.size(); }
int main(int c, char**) { return size(std::vector<std::string>(c)); }
"""


def use(image: ElfImage) -> None:
    """Everything that is ever asked of an image."""
    for name in image.sections:
        try:
            image.section_bytes(name)
        except FormatError:
            continue
    try:
        table = parse_symbol_table(image)
        table.lookup(np.arange(0, 1 << 20, 4099, np.uint64))
        for row in range(0, len(table), max(1, len(table) // 100)):
            table.name(row)
    except FormatError:
        pass
    binary_facts(image)
    unwinder = Unwinder(lambda _: image)
    offsets = np.unique(np.random.default_rng(3).integers(0, max(len(image.data), 1), 400)).astype(np.uint64)
    dso = np.zeros(len(offsets), np.int32)
    unwinder.cfa_from_frame_pointer(dso, offsets)
    unwinder.is_thread_entry(dso, offsets)


def outcome(data: bytes, name: str) -> str:
    try:
        image = parse_image(data, name)
    except FormatError as error:
        return "refused" if str(error).startswith(name) else f"nameless error: {error}"
    use(image)
    return "read"


@pytest.mark.parametrize("folder", FOLDERS)
def test_public_collections(corpus: Path, folder: str) -> None:
    paths = [path for path in (corpus / folder).rglob("*") if path.is_file() and path.stat().st_size < 20_000_000]
    outcomes = [outcome(path.read_bytes(), path.name) for path in paths]
    assert len(outcomes) > 0
    assert set(outcomes) <= {"read", "refused"}


def test_flipped_bytes_anywhere(tmp_path: Path) -> None:
    original = compile_program(tmp_path, "program.cpp", SOURCE, ["-O1", "-g1"]).read_bytes()
    generator = random.Random(11)
    outcomes = []
    for _ in range(120):
        data = bytearray(original)
        for _ in range(generator.randrange(1, 400)):
            data[generator.randrange(64, len(data))] = generator.randrange(256)
        outcomes.append(outcome(bytes(data), "flipped"))
    assert "read" in outcomes


def test_damaged_call_frames(tmp_path: Path) -> None:
    path = compile_program(tmp_path, "program.cpp", SOURCE, ["-O1"])
    original = path.read_bytes()
    section = parse_image(original, "whole").sections[".eh_frame"]
    generator = random.Random(12)
    for _ in range(150):
        data = bytearray(original)
        for _ in range(generator.randrange(1, 20)):
            data[section.file_offset + generator.randrange(section.size)] = generator.randrange(256)
        assert outcome(bytes(data), "flipped") == "read"
