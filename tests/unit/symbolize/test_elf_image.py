"""Structure of ELF files against readelf and objcopy, hand-made files against hand arithmetic, damaged ones for errors."""

from __future__ import annotations

import random
import re
import struct
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest

from profiler.errors import FormatError
from support.elf_builder import (
    PT_LOAD,
    PT_NOTE,
    SHF_ALLOC_EXECINSTR,
    SHT_NOBITS,
    SHT_NOTE,
    SHT_PROGBITS,
    ElfSpec,
    SectionSpec,
    SegmentSpec,
    build_elf,
    note,
)
from support.elf_programs import compile_program, load_image, system_library, tool_output
from symbolize.elf.image import ElfImage, gnu_build_id, parse_image

SOURCE = "int twice(int x) { return 2 * x; }\nint main(int c, char** v) { return twice(c); }\n"
NO_ADDRESS = 2**64 - 1


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_program(tmp_path_factory.mktemp("image"), "twice.c", SOURCE, ["-O1", "-g"])


def images_of_this_system(program: Path) -> list[Path]:
    return [program, system_library("libc.so.6"), system_library("ld-linux-x86-64.so.2")]


def test_sections_equal_readelf(program: Path) -> None:
    for path in images_of_this_system(program):
        listed = re.findall(
            r"^ *\[ *(\d+)\] (\S*) +(\S+) +([0-9a-f]{16}) ([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+) +([WAXMSILOGTCxoEDlpR]*) +(\d+) ",
            tool_output("readelf", "-SW", str(path)),
            re.MULTILINE,
        )
        image = load_image(path)
        assert len(listed) == len(image.section_table)
        for index, name, _, address, offset, size, entry_size, flags, link in listed:
            section = image.section_table[int(index)]
            shown = (section.name, section.link_address, section.file_offset, section.size, section.entry_size, section.link)
            assert shown == (name, int(address, 16), int(offset, 16), int(size, 16), int(entry_size, 16), int(link))
            assert section.is_executable == ("X" in flags)


def test_load_segments_equal_readelf(program: Path) -> None:
    for path in images_of_this_system(program):
        listed = re.findall(
            r"^  LOAD +0x(\w+) 0x(\w+) 0x\w+ 0x(\w+) 0x(\w+) (...) ", tool_output("readelf", "-lW", str(path)), re.MULTILINE
        )
        wanted = [(int(o, 16), int(v, 16), int(f, 16), int(m, 16), "E" in flags) for o, v, f, m, flags in listed]
        found = [
            (s.file_offset, s.link_address, s.file_size, s.memory_size, s.is_executable) for s in load_image(path).load_segments
        ]
        assert found == wanted


def test_header_numbers_and_build_id_equal_readelf(program: Path) -> None:
    for path in images_of_this_system(program):
        image = load_image(path)
        entry = re.search(r"Entry point address: +0x(\w+)", tool_output("readelf", "-hW", str(path)))
        build_id = re.search(r"Build ID: (\w+)", tool_output("readelf", "-nW", str(path)))
        assert entry
        assert build_id
        assert image.entry_address == int(entry[1], 16)
        assert image.build_id.hex() == build_id[1]
        assert (image.machine, image.elf_type) == (62, 3)  # EM_X86_64, ET_DYN


def test_build_id_without_section_headers(program: Path) -> None:
    data = bytearray(program.read_bytes())
    struct.pack_into("<Q", data, 40, 0)  # e_shoff
    struct.pack_into("<HHH", data, 58, 0, 0, 0)
    image = parse_image(bytes(data), "no sections")
    assert image.build_id == load_image(program).build_id
    assert len(image.build_id) == 20
    assert image.section_bytes(".text") is None


def test_no_build_id(tmp_path: Path) -> None:
    assert load_image(compile_program(tmp_path, "plain.c", SOURCE, ["-Wl,--build-id=none"])).build_id == b""


def test_section_bytes_equal_objcopy(program: Path, tmp_path: Path) -> None:
    image = load_image(program)
    for name in (".text", ".debug_info", ".comment"):
        dump = tmp_path / "section"
        tool_output("objcopy", "--dump-section", f"{name}={dump}", str(program), str(tmp_path / "copy"))
        contents = image.section_bytes(name)
        assert contents is not None
        assert bytes(contents) == dump.read_bytes()
    assert image.section_bytes(".bss") is None
    assert image.section_bytes(".nothing") is None
    assert not image.section_is_stored(".bss")


@pytest.mark.parametrize("method", ["zlib", "zstd", "zlib-gnu"])
def test_compressed_sections_are_decompressed(program: Path, tmp_path: Path, method: str) -> None:
    packed = tmp_path / "packed"
    done = subprocess.run(["objcopy", f"--compress-debug-sections={method}", str(program), str(packed)], capture_output=True)
    if done.returncode:
        pytest.skip(f"objcopy cannot compress with {method}")
    plain, compressed = load_image(program), load_image(packed)
    assert "C" in tool_output("readelf", "-SW", str(packed)) or ".zdebug_info" in compressed.sections
    for name in (".debug_info", ".debug_str", ".debug_abbrev"):
        wanted, found = plain.section_bytes(name), compressed.section_bytes(name)
        assert wanted is not None
        assert found is not None
        assert bytes(found) == bytes(wanted)


def test_zstd_section_by_hand() -> None:
    import zstandard

    content = bytes(range(256)) * 40
    header = struct.pack("<IIQQ", 2, 0, len(content), 1)
    section = SectionSpec(".debug_info", SHT_PROGBITS, header + zstandard.ZstdCompressor().compress(content), flags=0x800)
    found = parse_image(build_elf(ElfSpec(sections=[section])), "zstd").section_bytes(".debug_info")
    assert found is not None
    assert bytes(found) == content


@pytest.mark.parametrize(
    ("header", "packed"),
    [
        (struct.pack("<IIQQ", 1, 0, 1 << 50, 1), zlib.compress(b"abc")),  # claims a petabyte
        (struct.pack("<IIQQ", 1, 0, 100, 1), zlib.compress(b"abc")),  # holds less than it claims
        (struct.pack("<IIQQ", 1, 0, 3, 1), b"not zlib"),
        (struct.pack("<IIQQ", 2, 0, 3, 1), b"not zstd"),
        (struct.pack("<IIQQ", 77, 0, 3, 1), b"abc"),
        (b"short", b""),
    ],
)
def test_damaged_compressed_sections_are_format_errors(header: bytes, packed: bytes) -> None:
    section = SectionSpec(".debug_info", SHT_PROGBITS, header + packed, flags=0x800)
    image = parse_image(build_elf(ElfSpec(sections=[section])), "damaged")
    with pytest.raises(FormatError, match=r"damaged: byte \d+: .*\.debug_info"):
        image.section_bytes(".debug_info")


def test_section_beyond_the_file_is_a_format_error() -> None:
    image = parse_image(build_elf(ElfSpec(sections=[SectionSpec(".text", SHT_PROGBITS, b"abc", size=1 << 40)])), "cut")
    with pytest.raises(FormatError, match="beyond the end"):
        image.section_bytes(".text")


def lld_like() -> ElfImage:
    """As lld lays files out: text at file offset 0x630 but address 0x1630, data a page further on; and a hole between."""
    segments = [
        SegmentSpec(PT_LOAD, 4, 0, 0, 0x630),
        SegmentSpec(PT_LOAD, 5, 0x630, 0x1630, 0x200),
        SegmentSpec(PT_LOAD, 6, 0x900, 0x3900, 0x100),
    ]
    text = SectionSpec(".text", SHT_PROGBITS, bytes(0x1000), SHF_ALLOC_EXECINSTR, 0x1630)
    return parse_image(build_elf(ElfSpec(segments=segments, sections=[text])), "lld-like")


def test_link_addresses_go_through_the_containing_segment() -> None:
    offsets = np.array([0, 0x62F, 0x630, 0x82F, 0x830, 0x8FF, 0x900, 0x9FF, 0xA00, 2**63], np.uint64)
    wanted = [0, 0x62F, 0x1630, 0x182F, NO_ADDRESS, NO_ADDRESS, 0x3900, 0x39FF, NO_ADDRESS, NO_ADDRESS]
    image = lld_like()
    link = image.link_addresses(offsets)
    assert link.tolist() == wanted
    known = link != np.uint64(NO_ADDRESS)
    assert image.file_offsets(link[known]).tolist() == offsets[known].tolist()
    assert image.file_offsets(np.array([0x1000, 0x2000, NO_ADDRESS], np.uint64)).tolist() == [NO_ADDRESS] * 3


def test_executable_segment_wins_where_segments_share_bytes() -> None:
    segments = [SegmentSpec(PT_LOAD, 5, 0, 0x1000, 0x100), SegmentSpec(PT_LOAD, 4, 0, 0x8000, 0x100)]
    image = parse_image(build_elf(ElfSpec(segments=segments, sections=[])), "shared bytes")
    assert image.link_addresses(np.array([0x10], np.uint64)).tolist() == [0x1010]


def test_segments_and_sections_agree_on_link_addresses(program: Path, corpus: Path) -> None:
    paths = [*images_of_this_system(program), *(path for path in corpus.rglob("*") if path.is_file())]
    checked = shifted = 0
    for path in paths:
        try:
            image = load_image(path)
        except FormatError:
            continue
        if image.elf_type not in (2, 3) or path.suffix == ".debug":
            continue
        for section in image.section_table:
            if section.is_executable and section.type == SHT_PROGBITS and section.size:
                link = int(image.link_addresses(np.array([section.file_offset], np.uint64))[0])
                if link == NO_ADDRESS:  # segments of a debug file whose code was taken out
                    continue
                assert link == section.link_address, (path, section.name)
                checked += 1
                shifted += (section.link_address - section.file_offset) % 0x100000 != 0
    assert checked > 100
    assert shifted > 10


def test_notes_are_found_in_segments_and_sections_of_either_alignment() -> None:
    wanted = bytes(range(20))
    content = note(b"GNU", 1, bytes(16)) + note(b"Go", 4, b"xyz") + note(b"GNU", 3, wanted)
    assert gnu_build_id(memoryview(content)) == wanted
    section = SectionSpec(".note.gnu.build-id", SHT_NOTE, content)
    assert parse_image(build_elf(ElfSpec(sections=[section])), "section").build_id == wanted
    data = build_elf(
        ElfSpec(segments=[SegmentSpec(PT_NOTE, 4, 64 + 56, 0, len(content))], sections=[SectionSpec("n", 1, content)])
    )
    assert parse_image(data, "segment").build_id == wanted
    assert gnu_build_id(memoryview(struct.pack("<III", 4, 2**32 - 1, 3) + b"GNU\0")) == b""
    assert gnu_build_id(memoryview(b"")) == b""


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x7fELF",
        b"#!/bin/sh\n" + bytes(100),
        b"\x7fELF\x01\x01\x01" + bytes(200),  # 32 bits
        b"\x7fELF\x02\x02\x01" + bytes(200),  # big endian
    ],
)
def test_other_files_are_format_errors(data: bytes) -> None:
    with pytest.raises(FormatError, match=r"^some file: "):
        parse_image(data, "some file")


@pytest.mark.parametrize(
    ("offset", "value"),
    [(32, 2**63), (40, 2**63), (56, 0x7FFF), (60, 0xFFF0), (54, 3), (58, 3)],
    ids=["e_phoff", "e_shoff", "e_phnum", "e_shnum", "e_phentsize", "e_shentsize"],
)
def test_damaged_headers_are_format_errors(program: Path, offset: int, value: int) -> None:
    data = bytearray(program.read_bytes())
    struct.pack_into("<Q" if offset in (32, 40) else "<H", data, offset, value)
    with pytest.raises(FormatError, match=r"damaged"):
        parse_image(bytes(data), "damaged")


def test_truncated_files_are_format_errors(program: Path) -> None:
    data = program.read_bytes()
    for size in range(0, len(data), 997):
        with pytest.raises(FormatError):
            parse_image(data[:size], "truncated")


def test_flipped_bytes_never_do_worse_than_a_format_error(program: Path) -> None:
    original = program.read_bytes()
    generator = random.Random(20)
    outcomes = {True: 0, False: 0}
    for _ in range(300):
        data = bytearray(original)
        for _ in range(generator.randrange(1, 6)):
            region = generator.choice([(0, 64), (64, 900), (len(data) - 2000, len(data))])
            data[generator.randrange(*region)] = generator.randrange(256)
        try:
            image = parse_image(bytes(data), "flipped")
            for name in image.sections:
                image.section_bytes(name)
            outcomes[True] += 1
        except FormatError:
            outcomes[False] += 1
    assert outcomes[True] > 0
    assert outcomes[False] > 0


def test_nobits_sections_of_debug_files_have_no_bytes(program: Path, tmp_path: Path) -> None:
    debug = tmp_path / "twice.debug"
    tool_output("objcopy", "--only-keep-debug", str(program), str(debug))
    image = load_image(debug)
    assert image.sections[".text"].type == SHT_NOBITS
    assert image.section_bytes(".text") is None
    assert image.section_is_stored(".debug_info")
    assert image.build_id == load_image(program).build_id
