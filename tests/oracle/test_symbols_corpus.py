"""Inline chains of public binaries: against recorded addr2line output, and against the tools of this machine."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from profiler.errors import FormatError
from profiler.model.dso import Dso, DsoKind
from profiler.model.function import NameSource
from support.symbol_oracle import ToolFrame, compare, symbolized, text_addresses
from symbolize.dwarf.debug_info import DebugInfo
from symbolize.dwarf.sections import read_sections
from symbolize.elf.image import ElfImage, parse_image
from symbolize.elf.layout import ET_DYN, ET_EXEC
from symbolize.locate import Locator
from symbolize.symbolizer import Symbolizer

RECORDED = ("base-clang-g1", "base-clang-g2", "base-gcc-g1", "base-gcc-g2", "cold")
# (binary, file with its debug information)
BINARIES = (
    ("KDAB+hotspot/tests/modeltests/vector_static_gcc/vector_static_gcc_v9.1.0",) * 2,
    ("getsentry+symbolic/symbolic-testutils/fixtures/linux/crash",) * 2,
    ("google+bloaty/tests/testdata/dwarf5/dwarf5_simple_exe",) * 2,
    ("google+pprof/internal/report/testdata/sample.bin",) * 2,  # Go
    ("elfutils-0.188/tests/testfileaarch64",) * 2,
    ("koute+not-perf/test-data/bin/amd64-inline_functions",) * 2,
    (
        "koute+not-perf/test-data/bin/amd64-usleep_in_a_loop_external_info",
        "koute+not-perf/test-data/bin/amd64-usleep_in_a_loop_external_info.debug",
    ),
    ("mozilla+dump_syms/test_data/linux/basic.full",) * 2,
    ("mozilla+fix-stacks/tests/example-linux",) * 2,
    (
        "mstange+samply/fixtures/other/simple-example/out/regular-debuglink/main",
        "mstange+samply/fixtures/other/simple-example/out/regular-debuglink/main.dbg",
    ),
    ("open-telemetry+opentelemetry-ebpf-profiler/rust-crates/symblib/testdata/inline",) * 2,
    ("open-telemetry+opentelemetry-ebpf-profiler/rust-crates/symblib/testdata/inline-compressed-dwarf",) * 2,
    ("open-telemetry+opentelemetry-ebpf-profiler/rust-crates/symblib/testdata/inline-no-tco",) * 2,
)
FUZZED = ("google+bloaty/tests/testdata/fuzz_corpus", "getsentry+symbolic/symbolic-debuginfo/tests/fixtures")


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_addr2line_output(corpus: Path, name: str) -> None:
    program = corpus / "gimli-rs+object-testfiles/dwarf" / name
    expected = _recorded_chains(corpus / "gimli-rs+addr2line/testoutput/dwarf" / name)
    addresses = np.array(list(expected), np.uint64)
    assert len(addresses) > 0
    symbols = symbolized(program, addresses)
    for row, address in enumerate(expected):
        start, end = int(symbols.chains.start[row]), int(symbols.chains.start[row + 1])
        names = [symbols.functions[int(each)].linkage_name for each in symbols.chains.function[start:end]]
        files = [symbols.files[each] if each >= 0 else "??" for each in symbols.chains.file[start:end].tolist()]
        found = list(zip(names, [Path(file).name for file in files], symbols.chains.line[start:end].tolist(), strict=True))
        wanted = [(frame.name, Path(frame.file).name, frame.line) for frame in expected[address]]
        assert [each[1:] for each in found] == [each[1:] for each in wanted], hex(address)
        for (ours, _, _), (theirs, _, _) in zip(found, wanted, strict=True):
            # Line tables only: the tools print the bare name; between functions they print the nearest symbol.
            assert ours.split(".")[0].endswith(theirs.split(".")[0]) or ours.startswith(f"{name}+0x"), hex(address)


def _recorded_chains(path: Path) -> dict[int, list[ToolFrame]]:
    chains: dict[int, list[ToolFrame]] = {}
    lines = path.read_text().splitlines()
    position = 0
    while position < len(lines):
        if lines[position].startswith("0x"):
            current = chains.setdefault(int(lines[position], 16), [])
            position += 1
            continue
        file, _, number = lines[position + 1].rpartition(":")
        current.append(ToolFrame(lines[position], file, int(number) if number.isdigit() else 0))
        position += 2
    return chains


@pytest.mark.parametrize(("binary", "debug_file"), BINARIES)
def test_public_binaries_agree_with_the_tools(corpus: Path, binary: str, debug_file: str) -> None:
    program = corpus / binary
    addresses = text_addresses(program, 2000, seed=5)
    agreement = compare(corpus / debug_file, addresses, symbolized(program, addresses))
    print(f"{program.name}: {agreement.share:.2%} of {agreement.compared} addresses\n{agreement.report()}")
    assert agreement.compared > 0
    assert agreement.share >= 0.995


# (program with its debug information in .dwo or .dwp files, the same code with whole debug information)
SPLIT = (
    # Both for aarch64.
    (
        "mstange+samply/fixtures/other/simple-example/out/with-dwo/main",
        "mstange+samply/fixtures/other/simple-example/out/regular-debuglink/main.dbg",
    ),
    ("gimli-rs+object-testfiles/dwarf/base-gcc-split",) * 2,  # its package is found by the tools too
)


@pytest.mark.parametrize(("split", "whole"), SPLIT)
def test_split_programs_equal_whole_ones(corpus: Path, split: str, whole: str) -> None:
    program = corpus / split
    addresses = text_addresses(program, 2000, seed=9)
    symbols = symbolized(program, addresses)
    agreement = compare(corpus / whole, addresses, symbols)
    print(agreement.report())
    assert agreement.compared > 400
    assert agreement.disagreements == ()
    assert symbols.caveats.incomplete == ""
    assert np.diff(symbols.chains.start).max() > 1


# Programs whose .dwo or dwz file is not beside them under the recorded name, so that the tools know less than we do.
UNLIKE_THE_TOOLS = {
    "test-offset-loop",  # addr2line gives up on it, and nothing names the inlined function: "{inlined}" and llvm's "??"
    "testfile-splitdwarf-4",
    "testfile-splitdwarf-5",
    "testfilesplitranges4.debug",
    "testfilesplitranges5.debug",
    "main",
}


@pytest.mark.full
def test_every_linked_file_with_debug_information(corpus: Path) -> None:
    """All 64-bit little-endian programs and libraries of the inputs, of whatever machine and DWARF version."""
    seen = 0
    for path in sorted(corpus.rglob("*")):
        image = readable_image(path)
        if (
            image is None
            or not image.has_debug_info()
            or image.elf_type not in (ET_EXEC, ET_DYN)
            or ".text" not in image.sections
        ):
            continue
        addresses = text_addresses(path, 600, seed=4)
        agreement = compare(path, addresses, symbolized(path, addresses))
        seen += 1
        if path.name not in UNLIKE_THE_TOOLS:
            assert agreement.share >= 0.995, f"{path}\n{agreement.report()}"
    assert seen > 60


def readable_image(path: Path) -> ElfImage | None:
    if not path.is_file() or path.stat().st_size > 100 << 20:
        return None
    try:
        return parse_image(path.read_bytes(), str(path))
    except FormatError:
        return None


@pytest.mark.parametrize("name", ["basic.full", "basic.dbg"])
def test_breakpad_symbols(corpus: Path, name: str) -> None:
    """Functions, inlined calls and lines as dump_syms wrote them; FUNC and INLINE records hold addresses and sizes in hex."""
    directory = corpus / "mozilla+dump_syms/test_data/linux"
    wanted = breakpad_chains((directory / "basic.full.inlines.sym").read_text())
    assert len(wanted) > 150
    symbols = symbolized(directory / name, np.array(list(wanted), np.uint64))
    for row, (address, expected) in enumerate(wanted.items()):
        places = range(int(symbols.chains.start[row]), int(symbols.chains.start[row + 1]))
        found = [(symbols.functions[symbols.chains.function[each]].name, int(symbols.chains.line[each])) for each in places]
        assert found == expected, hex(address)


def breakpad_chains(text: str) -> dict[int, list[tuple[str, int]]]:
    """{address: [(function, line), innermost first]} of every address that a line record covers."""
    origins: dict[str, str] = {}
    function, chains = "", {}
    inlined: list[tuple[int, int, str, int, int]] = []  # depth, call line, name, address, size
    for line in text.splitlines():
        kind, *rest = line.split(" ")
        if kind == "INLINE_ORIGIN":
            origins[rest[0]] = " ".join(rest[1:])
        elif kind == "FUNC":
            function, inlined = " ".join(rest[3:]), []
        elif kind == "INLINE":
            depth, call_line, _, origin, *ranges = rest
            parts = zip(ranges[::2], ranges[1::2], strict=True)
            inlined += [(int(depth), int(call_line), origins[origin], int(start, 16), int(size, 16)) for start, size in parts]
        elif len(kind) == 4 and function and len(rest) == 3:
            for address in range(int(kind, 16), int(kind, 16) + int(rest[0], 16)):
                around = sorted(each for each in inlined if each[3] <= address < each[3] + each[4])
                names = [function, *(each[2] for each in around)]
                lines = [*(each[1] for each in around), int(rest[1])]
                chains[address] = list(zip(names, lines, strict=True))[::-1]
    return chains


# (binary, {link address: (file, line)} by `readelf --debug-dump=rawline`)
BARE_UNITS = (
    # An old assembler: ten opcodes, no ranges in the unit, and code from the start of the file.
    ("testfile12", {0x878: ("crti.S", 25), 0x87C: ("crti.S", 26), 0x900: ("crti.S", 11), 0x90B: ("crti.S", 13)}),
    # The compilation directory is a text of a supplementary file.
    ("testfile_multi_main", {0x4006AC: ("main.c", 4), 0x4006BB: ("main.c", 6), 0x4006C2: ("main.c", 7)}),
    ("libtestfile_multi_shared.so", {0x670: ("shared.c", 4), 0x678: ("shared.c", 5), 0x686: ("shared.c", 6)}),
)


@pytest.mark.parametrize(("binary", "places"), BARE_UNITS)
def test_lines_of_units_that_say_little_about_themselves(corpus: Path, binary: str, places: dict[int, tuple[str, int]]) -> None:
    symbols = symbolized(corpus / "elfutils-0.188/tests" / binary, np.array(list(places), np.uint64))
    innermost = symbols.chains.start[:-1]
    files = [Path(symbols.files[each]).name if each >= 0 else "" for each in symbols.chains.file[innermost].tolist()]
    assert list(zip(files, symbols.chains.line[innermost].tolist(), strict=True)) == list(places.values())


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    def give_up(signum: int, frame: object) -> None:
        raise TimeoutError(f"more than {seconds} s")

    previous = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


def test_fuzzed_files_neither_crash_nor_hang(corpus: Path) -> None:
    files = [path for directory in FUZZED for path in sorted((corpus / directory).rglob("*")) if path.is_file()]
    assert len(files) > 20
    symbolizer = Symbolizer(Locator(), None)
    offsets = np.arange(0, 1 << 16, 97, dtype=np.uint64)
    for path in files:
        with time_limit(20):
            symbols = symbolizer.symbolize(Dso(str(path), b"", DsoKind.FILE), offsets, np.zeros(len(offsets), np.bool_))
        assert len(symbols.chains.start) == len(offsets) + 1
        assert symbols.chains.function.max() < len(symbols.functions)
        assert symbols.status or any(each.name_source != NameSource.UNRESOLVED for each in symbols.functions), path


@pytest.mark.parametrize("section", [".debug_info", ".debug_abbrev", ".debug_line", ".debug_aranges", ".debug_str"])
def test_damaged_sections_leave_units_out_and_nothing_else(corpus: Path, section: str) -> None:
    """Bytes of one section overwritten one after the other: whatever is left must be answered without an exception."""
    data = (corpus / "open-telemetry+opentelemetry-ebpf-profiler/rust-crates/symblib/testdata/inline").read_bytes()
    image = parse_image(data, "inline")
    place = image.sections[section]
    random = np.random.default_rng(6)
    for _ in range(12):
        damaged = bytearray(data)
        for position in random.integers(0, place.size, 20).tolist():
            damaged[place.file_offset + position] = int(random.integers(0, 256))
        sections = read_sections(parse_image(bytes(damaged), "damaged"))
        assert sections is not None
        info = DebugInfo(sections)
        known = info.empty_map()
        addresses = known.units.start.copy()
        with time_limit(20):
            assert len(info.extend(known, addresses).unanswered(addresses)) == 0
