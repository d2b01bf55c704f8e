"""Separate debug files in all their forms: names, lines and inlined calls are those of the whole program, of which the tools
tell."""

from __future__ import annotations

import http.server
import itertools
import lzma
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from profiler.model.arrays import UInt64Column
from profiler.model.dso import Dso, DsoKind
from profiler.model.function import NameSource
from profiler.model.symbols import DsoSymbols
from support import symbol_programs
from support.elf_programs import tool_output
from support.symbol_oracle import Agreement, compare, text_addresses
from symbolize.debuginfod import configured_servers
from symbolize.elf.image import parse_image
from symbolize.locate import Locator, SearchPaths
from symbolize.root_directory import RootDirectory
from symbolize.symbolizer import Symbolizer

AGREEMENT = 0.995
COMPARED = 2000
OPTIONS = ("-O2", "-g")


@pytest.fixture(autouse=True)
def no_foreign_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "downloads"))
    monkeypatch.delenv("DEBUGINFOD_URLS", raising=False)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Whole; never looked at by slotscope, which gets what was made of it."""
    return symbol_programs.build_cxx(tmp_path_factory.mktemp("whole"), OPTIONS)


def build_id_of(program: Path) -> bytes:
    listing = tool_output("readelf", "-n", str(program))
    return bytes.fromhex(listing.split("Build ID: ")[1].split()[0])


def separated(program: Path, directory: Path) -> tuple[Path, Path]:
    """(stripped program, its debug file); nothing in the one tells of the other."""
    directory.mkdir(exist_ok=True)
    stripped, debug = directory / "program", directory / "elsewhere.debug"
    tool_output("objcopy", "--only-keep-debug", str(program), str(debug))
    tool_output("objcopy", "--strip-all", str(program), str(stripped))
    return stripped, debug


def answers(program: Path, recorded: Path, addresses: UInt64Column, search: SearchPaths) -> DsoSymbols:
    """For the file offsets that a recording of ``program`` at the path ``recorded`` would have."""
    offsets = parse_image(program.read_bytes(), str(program)).file_offsets(addresses)
    dso = Dso(str(recorded), build_id_of(program), DsoKind.FILE)
    return Symbolizer(Locator(search), None).symbolize(dso, offsets, np.zeros(len(offsets), np.bool_))


def agreement(program: Path, recorded: Path, search: SearchPaths) -> Agreement:
    addresses = text_addresses(program, 2400, seed=21)
    return compare(program, addresses, answers(program, recorded, addresses, search))


def assert_agrees(found: Agreement) -> None:
    print(f"{found.share:.2%} of {found.compared} addresses\n{found.report()}")
    assert found.compared >= COMPARED
    assert found.share >= AGREEMENT


PLACES = (
    "tree/.build-id/{id2}/{rest}.debug",
    "tree{directory}/program.debug",
    "tree{directory}/program",
    "home/.debug/.build-id/{id2}/{rest}/debug",
    "extra/.build-id/{id2}/{rest}.debug",
    "sysroot/usr/lib/debug/.build-id/{id2}/{rest}.debug",
)


@pytest.mark.parametrize("place", [PLACES[0], *(pytest.param(place, marks=pytest.mark.full) for place in PLACES[1:])])
def test_places_of_a_debug_file(place: str, program: Path, tmp_path: Path) -> None:
    stripped, debug = separated(program, tmp_path / "bin")
    name = build_id_of(program).hex()
    target = tmp_path / place.format(id2=name[:2], rest=name[2:], directory=stripped.parent)
    target.parent.mkdir(parents=True)
    debug.rename(target)
    sysroot = tmp_path / "sysroot"
    if place.startswith("sysroot"):
        inside = sysroot / str(stripped).lstrip("/")
        inside.parent.mkdir(parents=True)
        stripped.rename(inside)
    search = SearchPaths(
        (tmp_path / "tree",), (tmp_path / "extra",), RootDirectory(sysroot) if place.startswith("sysroot") else None
    )
    assert_agrees(agreement(program, stripped, search))


@pytest.mark.parametrize("place", PLACES[1:3])
def test_a_stale_debug_file_under_the_program_s_path_is_not_used(place: str, program: Path, tmp_path: Path) -> None:
    stripped, debug = separated(program, tmp_path / "bin")
    stale = tmp_path / "stale"
    stale.mkdir()
    tool_output("objcopy", "--only-keep-debug", str(symbol_programs.build_cxx(stale, ("-O1", "-g"))), str(debug))
    target = tmp_path / place.format(directory=stripped.parent)
    target.parent.mkdir(parents=True)
    debug.rename(target)
    symbols = answers(program, stripped, text_addresses(program, 200, seed=1), SearchPaths((tmp_path / "tree",)))
    assert {each.name_source for each in symbols.functions} == {NameSource.UNRESOLVED}


COMBINATIONS = tuple(
    itertools.product(("bfd", "gold", "lld", "mold"), ("objcopy", "llvm-objcopy", "eu-strip"), ("pie", "no-pie"))
)
QUICK = (
    ("bfd", "objcopy", "pie"),
    ("gold", "llvm-objcopy", "no-pie"),
    ("lld", "objcopy", "no-pie"),
    ("mold", "eu-strip", "pie"),
)


@pytest.mark.parametrize(
    ("linker", "tool", "link"),
    [pytest.param(*each, marks=() if each in QUICK else pytest.mark.full) for each in COMBINATIONS],
)
def test_a_debug_file_answers_without_its_program(linker: str, tool: str, link: str, tmp_path: Path) -> None:
    """Only the debug file is at hand; where code lay in the program's file follows from its segments."""
    for needed in (tool, f"ld.{linker}"):
        if shutil.which(needed) is None:
            pytest.skip(f"{needed} is not installed")
    program = symbol_programs.build_cxx(tmp_path, (*OPTIONS, f"-fuse-ld={linker}", f"-{link}", "-Wl,--build-id=sha1"))
    name = build_id_of(program).hex()
    debug = tmp_path / "tree" / ".build-id" / name[:2] / f"{name[2:]}.debug"
    debug.parent.mkdir(parents=True)
    if tool == "eu-strip":
        tool_output(tool, "-f", str(debug), "-o", str(tmp_path / "stripped"), str(program))
    else:
        tool_output(tool, "--only-keep-debug", str(program), str(debug))
    addresses = text_addresses(program, 2400, seed=22)
    symbols = answers(program, tmp_path / "gone", addresses, SearchPaths((tmp_path / "tree",)))
    if {each.name_source for each in symbols.functions} == {NameSource.UNRESOLVED}:
        # Better no names than wrong ones; this tool writes such segments for this linker only.
        assert (tool, linker) == ("llvm-objcopy", "mold")
        return
    assert_agrees(compare(program, addresses, symbols))


def test_mini_debug_info(program: Path, tmp_path: Path) -> None:
    """Made as Fedora's packages have it: .dynsym and, compressed inside, the functions that it lacks."""
    stripped, _ = separated(program, tmp_path / "bin")
    mini = tmp_path / "mini"
    listing = [line.split() for line in tool_output("nm", "--defined-only", "--format=posix", str(program)).splitlines()]
    exported = {
        line.split()[0] for line in tool_output("nm", "-D", "--defined-only", "--format=posix", str(program)).splitlines()
    }
    keep = tmp_path / "keep"
    keep.write_text("".join(f"{row[0]}\n" for row in listing if row[1] in "tTwW" and row[0] not in exported))
    tool_output("objcopy", "-S", "--remove-section=.gdb_index", f"--keep-symbols={keep}", str(program), str(mini))
    packed = tmp_path / "packed"
    packed.write_bytes(lzma.compress(mini.read_bytes(), format=lzma.FORMAT_XZ))
    without = answers(program, stripped, text_addresses(program, 500, seed=2), SearchPaths(()))
    assert {each.name_source for each in without.functions} == {NameSource.UNRESOLVED}
    tool_output("objcopy", f"--add-section=.gnu_debugdata={packed}", str(stripped))
    functions = {row[0]: (int(row[2], 16), int(row[3], 16)) for row in listing if row[1] in "tT" and len(row) > 3}
    wanted = [(name, start) for name, (start, size) in functions.items() if size > 0 and name not in ("_init", "_fini")]
    assert len(wanted) > 20
    symbols = answers(program, stripped, np.array([start for _, start in wanted], np.uint64), SearchPaths(()))
    assert symbols.status == ""
    addresses = dict(wanted)
    found = [symbols.functions[each].linkage_name for each in symbols.chains.function.tolist()]
    assert [addresses[name] for name in found] == [start for _, start in wanted]


@pytest.mark.parametrize("damage", ["cut", "not xz", "no ELF"])
def test_damaged_mini_debug_info_counts_as_absent(damage: str, program: Path, tmp_path: Path) -> None:
    stripped, _ = separated(program, tmp_path / "bin")
    packed = tmp_path / "packed"
    whole = lzma.compress(program.read_bytes())
    packed.write_bytes({"cut": whole[: len(whole) // 2], "not xz": b"x" * 99, "no ELF": lzma.compress(b"y" * 99)}[damage])
    tool_output("objcopy", f"--add-section=.gnu_debugdata={packed}", str(stripped))
    symbols = answers(program, stripped, text_addresses(program, 50, seed=3), SearchPaths(()))
    assert {each.name_source for each in symbols.functions} == {NameSource.UNRESOLVED}


class _Files(http.server.BaseHTTPRequestHandler):
    """Answers as debuginfod(8) does; ``server.files``: {path: content}, ``server.asked``: paths in order."""

    server: _Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        content = self.server.files.get(self.path)
        self.send_response(404 if content is None else 200)
        self.end_headers()
        self.wfile.write(content or b"")

    def log_message(self, format: str, *args: object) -> None:
        pass


class _Server(http.server.HTTPServer):
    files: dict[str, bytes]
    asked: list[str]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@pytest.fixture
def server() -> Iterator[_Server]:
    made = _Server(("127.0.0.1", 0), _Files)
    made.files, made.asked = {}, []
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def test_debuginfod_gives_the_debug_file(program: Path, tmp_path: Path, server: _Server) -> None:
    stripped, debug = separated(program, tmp_path / "bin")
    path = f"/buildid/{build_id_of(program).hex()}/debuginfo"
    server.files[path] = debug.read_bytes()
    debug.unlink()
    search = SearchPaths((), debuginfod_urls=(server.url,))
    assert_agrees(agreement(program, stripped, search))
    assert_agrees(agreement(program, stripped, search))
    assert server.asked == [path]  # the second time it is in the cache
    assert (tmp_path / "downloads" / build_id_of(program).hex() / "debuginfo").read_bytes() == server.files[path]


def test_debuginfod_gives_the_program(program: Path, tmp_path: Path, server: _Server) -> None:
    server.files[f"/buildid/{build_id_of(program).hex()}/executable"] = program.read_bytes()
    assert_agrees(agreement(program, tmp_path / "gone", SearchPaths((), debuginfod_urls=(server.url,))))


def test_debuginfod_is_not_asked_unless_it_is_configured(
    program: Path, tmp_path: Path, server: _Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    stripped, _ = separated(program, tmp_path / "bin")
    monkeypatch.setenv("DEBUGINFOD_URLS", f"{server.url} ftp://elsewhere {server.url}/b")
    answers(program, stripped, text_addresses(program, 5, seed=3), SearchPaths(()))
    assert server.asked == []
    assert configured_servers() == (server.url, f"{server.url}/b")


def test_a_file_of_another_build_from_debuginfod_is_not_used(program: Path, tmp_path: Path, server: _Server) -> None:
    stripped, _ = separated(program, tmp_path / "bin")
    (tmp_path / "other").mkdir()
    other = symbol_programs.build_cxx(tmp_path / "other", ("-O1", "-g"))
    server.files[f"/buildid/{build_id_of(program).hex()}/debuginfo"] = other.read_bytes()
    search = SearchPaths((), debuginfod_urls=(server.url,))
    symbols = answers(program, stripped, text_addresses(program, 50, seed=3), search)
    assert {each.name_source for each in symbols.functions} == {NameSource.UNRESOLVED}


def test_a_debuginfod_server_that_is_not_there_is_asked_once(program: Path, tmp_path: Path) -> None:
    stripped, _ = separated(program, tmp_path / "bin")
    with http.server.HTTPServer(("127.0.0.1", 0), _Files) as closed:
        url = f"http://127.0.0.1:{closed.server_port}"
    search = SearchPaths((), debuginfod_urls=(url,))
    symbols = answers(program, stripped, text_addresses(program, 50, seed=3), search)
    assert "stripped, no debug file" in symbols.status
    assert subprocess.run(["ls", "-A", str(tmp_path / "downloads")], capture_output=True, check=False).stdout == b""


def test_debuginfod_gives_the_file_that_dwz_made(program: Path, tmp_path: Path, server: _Server) -> None:
    tool = shutil.which("dwz")
    if tool is None:
        pytest.skip("dwz is not installed")
    reduced, sibling, shared = (tmp_path / name for name in ("reduced", "sibling", "shared"))
    shutil.copy(program, reduced)
    shutil.copy(program, sibling)
    tool_output(tool, "-m", str(shared), str(reduced), str(sibling))
    server.files[f"/buildid/{build_id_of(shared).hex()}/debuginfo"] = shared.read_bytes()
    shared.unlink()
    assert_agrees(agreement(program, reduced, SearchPaths((), debuginfod_urls=(server.url,))))
