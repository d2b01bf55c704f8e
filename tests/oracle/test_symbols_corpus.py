"""Inline chains of public binaries: against recorded addr2line output, and against the tools of this machine."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from profiler.model.dso import Dso, DsoKind
from profiler.model.symbols import NameSource
from support.symbol_oracle import ToolFrame, compare, symbolized, text_addresses
from symbolize.dwarf.debug_info import DebugInfo
from symbolize.dwarf.sections import read_sections
from symbolize.elf.image import parse_image
from symbolize.locate import Locator
from symbolize.symbolizer import Symbolizer

RECORDED = ("base-clang-g1", "base-clang-g2", "base-gcc-g1", "base-gcc-g2", "cold")
# (binary, file with its debug information)
BINARIES = (
    ("KDAB+hotspot/tests/modeltests/vector_static_gcc/vector_static_gcc_v9.1.0",) * 2,
    ("getsentry+symbolic/symbolic-testutils/fixtures/linux/crash",) * 2,
    ("google+bloaty/tests/testdata/dwarf5/dwarf5_simple_exe",) * 2,
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
