"""Debug files: asked for by build ID, taken when they are what they should be, the better ones kept, found by the search."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import zstandard

from profiler.codec.container import encode
from profiler.model.dso import Dso, DsoKind
from profiler.protocol.upload import UploadOffer
from profiler.service.ingest.debug_files import DebugTree, SymbolRank, rank_of
from profiler.service.ingest.ingest import Ingest
from profiler.service.ingest.reception import offer_upload
from profiler.service.ingest.upload_error import UploadError
from profiler.service.ingest.wanted import wanted_files
from profiler.store.debug_tree import debug_directory
from support.elf_programs import compile_program, load_image, tool_output
from support.sample_captures import run_info, two_stack_capture
from support.uploading import AGENT, OTHER_AGENT, OTHER_JOB, Bench, debug_offer_of, offer_of, open_bench, upload
from symbolize.symbol_tools import symbol_tools

SOURCE = "int twice(int x) { return 2 * x; }\nint main(int c, char** v) { return twice(c); }\n"
ELSEWHERE = "ee" * 20


@dataclass(frozen=True, slots=True)
class Files:
    """One program: with DWARF, with its symbol table only, with dynamic symbols only.  ``other``: another build."""

    build_id: str
    dwarf: Path
    symbols: Path
    dynamic: Path
    other: Path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    directory = tmp_path_factory.mktemp("programs")
    options = ["-g", "-rdynamic", "-Wl,--build-id=sha1"]
    program = compile_program(directory, "twice.c", SOURCE, options)
    other = compile_program(directory, "other.c", SOURCE.replace("2", "3"), options)
    made = {name: directory / name for name in ("dwarf", "symbols", "dynamic")}
    tool_output("objcopy", "--only-keep-debug", str(program), str(made["dwarf"]))
    tool_output("objcopy", "--strip-debug", str(program), str(made["symbols"]))
    tool_output("objcopy", "--strip-all", str(program), str(made["dynamic"]))
    return Files(load_image(program).build_id.hex(), **made, other=other)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("HOME", str(tmp_path))
    return open_bench(tmp_path / "store")


def captured(bench: Bench, *build_ids: str, agent: str = AGENT) -> None:
    """A capture of this agent with frames in files of these build IDs."""
    capture = two_stack_capture(run_info("s", "x"))
    dsos = tuple(Dso(f"/opt/{number}", bytes.fromhex(build_id), DsoKind.FILE) for number, build_id in enumerate(build_ids))
    frames = replace(capture.frames, dso=np.arange(3, dtype=np.int32) % len(dsos), symbol=np.full(3, -1, np.int32))
    data = encode(replace(capture, dsos=dsos, frames=frames))
    job = OTHER_JOB if agent == OTHER_AGENT else offer_of(b"").job
    assert upload(bench.ingest, data, offer_of(data, job), agent).refusal == ""


def packed(path: Path) -> bytes:
    return zstandard.ZstdCompressor(level=3).compress(path.read_bytes())


def sent(ingest: Ingest, path: Path, build_id: str, agent: str = AGENT) -> str:
    data = packed(path)
    return upload(ingest, data, debug_offer_of(data, build_id), agent).refusal


def kept(bench: Bench, build_id: str) -> Path:
    return bench.ingest.store.directory / "debug" / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"


def test_kernel_and_vdso_are_never_wanted_nor_what_has_names(bench: Bench) -> None:
    capture = two_stack_capture(run_info("s", "x"))
    vdso = (Dso("[vdso]", b"\x11" * 20, DsoKind.VDSO), Dso("[kernel]", b"\x22" * 20, DsoKind.KERNEL))
    named = replace(capture.frames, symbol=np.zeros(3, np.int32))
    for each in (replace(capture, dsos=vdso), replace(capture, frames=named)):
        assert upload(bench.ingest, encode(each)).refusal == ""
    assert wanted_files(bench.ingest, AGENT).build_ids == ()


def test_what_the_agent_could_not_read_is_never_wanted(bench: Bench) -> None:
    captured(bench, "00" * 32, ELSEWHERE)
    assert wanted_files(bench.ingest, AGENT).build_ids == (ELSEWHERE,)


def test_a_file_is_wanted_until_it_is_there(bench: Bench, files: Files) -> None:
    captured(bench, files.build_id, ELSEWHERE)
    assert wanted_files(bench.ingest, AGENT).build_ids == tuple(sorted((files.build_id, ELSEWHERE)))
    assert wanted_files(bench.ingest, OTHER_AGENT).build_ids == ()
    assert sent(bench.ingest, files.dwarf, files.build_id) == ""
    assert kept(bench, files.build_id).read_bytes() == files.dwarf.read_bytes()
    assert wanted_files(bench.ingest, AGENT).build_ids == (ELSEWHERE,)


def test_who_has_only_dynamic_symbols_is_not_asked_again_but_others_are(bench: Bench, files: Files) -> None:
    captured(bench, files.build_id)
    captured(bench, files.build_id, ELSEWHERE, agent=OTHER_AGENT)
    assert sent(bench.ingest, files.dynamic, files.build_id) == ""
    assert wanted_files(bench.ingest, AGENT).build_ids == ()
    assert files.build_id in wanted_files(bench.ingest, OTHER_AGENT).build_ids
    assert sent(bench.ingest, files.symbols, files.build_id, OTHER_AGENT) == ""
    assert files.build_id not in wanted_files(bench.ingest, OTHER_AGENT).build_ids


def test_the_search_of_every_command_finds_it(bench: Bench, files: Files, tmp_path: Path) -> None:
    captured(bench, files.build_id)
    assert sent(bench.ingest, files.dwarf, files.build_id) == ""
    dso = Dso("/only/on/the/agents/host", bytes.fromhex(files.build_id), DsoKind.FILE)
    found = symbol_tools((), debug_directory(bench.ingest.store.directory)).locator.locate(dso)
    assert found.debug_image is not None
    assert found.debug_image.name == str(kept(bench, files.build_id))
    assert symbol_tools((), debug_directory(tmp_path)).locator.locate(dso).debug_image is None


def test_ranks_are_those_of_binutils(files: Files) -> None:
    for path, rank, sections in (
        (files.dwarf, SymbolRank.DWARF, (True, True)),
        (files.symbols, SymbolRank.SYMBOLS, (False, True)),
        (files.dynamic, SymbolRank.DYNAMIC_SYMBOLS, (False, False)),
    ):
        listing = tool_output("readelf", "-WS", str(path))
        assert (" .debug_info " in listing, " .symtab " in listing) == sections
        assert rank_of(load_image(path)) is rank


@pytest.mark.parametrize(
    ("order", "stays"),
    [
        (("dynamic", "symbols", "dwarf"), "dwarf"),
        (("dwarf", "symbols", "dynamic"), "dwarf"),
        (("symbols", "dynamic"), "symbols"),
        (("dynamic", "symbols"), "symbols"),
    ],
)
def test_only_a_better_one_replaces_a_worse_one(bench: Bench, files: Files, order: tuple[str, ...], stays: str) -> None:
    captured(bench, files.build_id)
    for name in order:
        assert sent(bench.ingest, getattr(files, name), files.build_id) == ""
    assert kept(bench, files.build_id).read_bytes() == getattr(files, stays).read_bytes()
    assert list(kept(bench, files.build_id).parent.iterdir()) == [kept(bench, files.build_id)]


def test_several_at_once_leave_the_best(files: Files, tmp_path: Path) -> None:
    tree = DebugTree(tmp_path / "store")
    ranks = {files.dynamic: 1, files.symbols: 2, files.dwarf: 3}
    copies = []
    for number, path in enumerate([*ranks] * 4):
        copies.append((Path(shutil.copy(path, tmp_path / str(number))), SymbolRank(ranks[path])))
    threads = [threading.Thread(target=tree.place, args=(path, files.build_id, rank)) for path, rank in copies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tree.rank(files.build_id) is SymbolRank.DWARF


def test_a_damaged_file_in_the_tree_is_replaced(bench: Bench, files: Files) -> None:
    captured(bench, files.build_id)
    kept(bench, files.build_id).parent.mkdir(parents=True)
    kept(bench, files.build_id).write_bytes(b"\x7fELF and no more")
    assert wanted_files(bench.ingest, AGENT).build_ids == (files.build_id,)
    assert sent(bench.ingest, files.dynamic, files.build_id) == ""
    assert kept(bench, files.build_id).read_bytes() == files.dynamic.read_bytes()


def raw_offer(data: bytes, files: Files) -> UploadOffer:
    return debug_offer_of(data, files.build_id)


def patched(offset: int, value: bytes) -> Callable[[bytes], bytes]:
    return lambda data: data[:offset] + value + data[offset + len(value) :]


def with_notes_of(size: int) -> Callable[[bytes], bytes]:
    """The first note segment claims to be longer."""

    def change(data: bytes) -> bytes:
        start = int.from_bytes(data[0x20:0x28], "little")
        for header in range(start, start + 56 * int.from_bytes(data[0x38:0x3A], "little"), 56):
            if data[header : header + 4] == b"\4\0\0\0":
                return patched(header + 0x20, size.to_bytes(8, "little"))(data)
        raise AssertionError("no notes")

    return change


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: b"#!/bin/sh\n" + data, "not an ELF file"),
        (lambda data: data[:40], "not an ELF file"),
        (lambda data: data[: len(data) // 2], "section headers end beyond the end"),
        (patched(4, b"\1"), "only 64-bit little-endian ELF files"),
        (patched(0x3C, b"\0\0"), "no sections, or more than 65,279 of them"),
        (patched(0x28, b"\xff" * 8), "section headers"),
        (patched(0x28, bytes(8)), "neither DWARF nor a symbol table"),
        (with_notes_of(1 << 40), "1099511"),
    ],
)
def test_files_that_are_no_debug_files(bench: Bench, files: Files, change: Callable[[bytes], bytes], reason: str) -> None:
    captured(bench, files.build_id)
    data = zstandard.ZstdCompressor().compress(change(files.symbols.read_bytes()))
    assert reason in upload(bench.ingest, data, raw_offer(data, files)).refusal
    assert not kept(bench, files.build_id).exists()


def test_what_is_not_compressed(bench: Bench, files: Files) -> None:
    captured(bench, files.build_id)
    data = files.dwarf.read_bytes()
    assert upload(bench.ingest, data, raw_offer(data, files)).refusal.startswith("cannot be decompressed")


def test_a_file_of_another_build(bench: Bench, files: Files) -> None:
    captured(bench, files.build_id)
    other = load_image(files.other).build_id.hex()
    assert sent(bench.ingest, files.other, files.build_id) == f"build ID {other}, not {files.build_id}"
    data = packed(files.other)
    with pytest.raises(UploadError, match=f"build ID {other} is in no capture of this agent"):
        offer_upload(bench.ingest, AGENT, debug_offer_of(data, other))
    assert not (bench.ingest.store.directory / "debug").exists()


def test_a_section_that_would_fill_the_memory_of_who_reads_it(bench: Bench, files: Files, tmp_path: Path) -> None:
    captured(bench, files.build_id)
    path = tmp_path / "packed"
    tool_output("objcopy", "--compress-debug-sections=zlib", str(files.dwarf), str(path))
    image = load_image(path)
    section = next(each for each in image.section_table if each.name == ".debug_info" or each.flags & 0x800)
    data = patched(section.file_offset + 8, (1 << 50).to_bytes(8, "little"))(path.read_bytes())
    path.write_bytes(data)
    assert "compressed sections of" in sent(bench.ingest, path, files.build_id)


def test_an_agent_that_lies_about_a_path_is_not_followed(bench: Bench) -> None:
    """Files are looked for by build ID only: a path could be that of a pipe or of another's file."""
    capture = two_stack_capture(run_info("s", "x"))
    data = encode(replace(capture, dsos=(Dso("/proc/kmsg", b"\xaa" * 20, DsoKind.FILE), capture.dsos[1])))
    assert upload(bench.ingest, data).refusal == ""
    assert wanted_files(bench.ingest, AGENT).build_ids == ("aa" * 20,)
