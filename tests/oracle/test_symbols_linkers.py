"""Programs of every linker and of every kind of link, address by address, against addr2line and llvm-symbolizer."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest
from _pytest.mark import ParameterSet

from profiler.model.arrays import UInt64Column
from profiler.model.dso import Dso, DsoKind
from support import symbol_programs
from support.symbol_oracle import UNKNOWN, compare, llvm_chains, symbolized, text_addresses
from symbolize.elf.image import parse_image
from symbolize.locate import Locator
from symbolize.symbolizer import Symbolizer

AGREEMENT = 0.995
COMPARED = 2000
DEBUG = ("-O2", "-g")
# (linker or "", options)
CXX: dict[str, tuple[str, tuple[str, ...]]] = {
    "lld": ("ld.lld", (*DEBUG, "-fuse-ld=lld")),
    "lld-non-pie": ("ld.lld", (*DEBUG, "-fuse-ld=lld", "-no-pie", "-fno-pie")),
    "lld-gc": ("ld.lld", (*DEBUG, "-fuse-ld=lld", "-ffunction-sections", "-Wl,--gc-sections", "-Wl,--icf=all")),
    "lld-dwarf4-zlib": ("ld.lld", (*DEBUG, "-gdwarf-4", "-fuse-ld=lld", "-Wl,--compress-debug-sections=zlib")),
    "mold": ("mold", (*DEBUG, "-fuse-ld=mold")),
    "mold-gc": ("mold", (*DEBUG, "-fuse-ld=mold", "-ffunction-sections", "-Wl,--gc-sections")),
    "mold-static-pie": ("mold", (*DEBUG, "-fuse-ld=mold", "-static-pie")),
    "gold": ("ld.gold", (*DEBUG, "-fuse-ld=gold")),
    "gold-gc": ("ld.gold", (*DEBUG, "-fuse-ld=gold", "-ffunction-sections", "-Wl,--gc-sections", "-Wl,--icf=all")),
    "bfd-non-pie": ("", (*DEBUG, "-no-pie", "-fno-pie")),
    "bfd-static": ("", (*DEBUG, "-static")),
    "bfd-static-pie": ("", (*DEBUG, "-static-pie")),
    "bfd-types": ("", (*DEBUG, "-fdebug-types-section")),
    "bfd-dwarf64": ("", (*DEBUG, "-gdwarf64")),
    "bfd-dwarf64-4": ("", (*DEBUG, "-gdwarf-4", "-gdwarf64")),
    "bfd-dwarf2": ("", (*DEBUG, "-gdwarf-2")),
    "bfd-dwarf3": ("", (*DEBUG, "-gdwarf-3")),
    "bfd-dwarf5-lto": ("", ("-O3", "-g", "-gdwarf-5", "-flto", "-flto-partition=max")),
    "bfd-zlib-gnu": ("", (*DEBUG, "-gz=zlib-gnu")),
    "bfd-zlib": ("", (*DEBUG, "-gz=zlib")),
}
RUST = {
    "default-linker": ("-C", "opt-level=2", "-C", "debuginfo=2"),  # rust-lld since 1.90
    "lld": ("-C", "opt-level=2", "-C", "debuginfo=2", "-C", "link-arg=-fuse-ld=lld"),
    "mold": ("-C", "opt-level=2", "-C", "debuginfo=1", "-C", "link-arg=-fuse-ld=mold"),
    "static": ("-C", "opt-level=2", "-C", "debuginfo=1", "-C", "target-feature=+crt-static"),
    "thin-lto": ("-C", "opt-level=3", "-C", "debuginfo=1", "-C", "lto=thin"),
}


# In every run; the rest only in the long one.
QUICK = (
    "lld",
    "mold-gc",
    "gold-gc",
    "bfd-non-pie",
    "bfd-static-pie",
    "bfd-dwarf64",
    "bfd-types",
    "lld-dwarf4-zlib",
    "default-linker",
)


def cases(variants: Iterable[str]) -> list[ParameterSet]:
    return [pytest.param(name, marks=() if name in QUICK else pytest.mark.full) for name in variants]


def need(tool: str) -> None:
    if tool and shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")


def described_addresses(program: Path) -> UInt64Column:
    """2,400 addresses of .text that llvm-symbolizer or slotscope knows a file of: not in a static C library without debug
    information."""
    addresses = text_addresses(program, 60_000, seed=11)
    chains = llvm_chains(program, addresses)
    known = np.array([any(frame.file not in (UNKNOWN, "") for frame in chain) for chain in chains], np.bool_)
    chosen = addresses[known | symbolized(program, addresses).has_debug_info.astype(np.bool_)]
    return chosen[:: max(1, len(chosen) // 2400)]


@pytest.mark.parametrize("variant", cases(CXX))
def test_cxx_agrees_with_both_tools(variant: str, tmp_path: Path) -> None:
    linker, options = CXX[variant]
    need(linker)
    program = symbol_programs.build_cxx(tmp_path, options)
    assert_agreement(program)


def assert_agreement(program: Path) -> None:
    addresses = described_addresses(program)
    agreement = compare(program, addresses, symbolized(program, addresses))
    print(f"{agreement.share:.2%} of {agreement.compared} addresses\n{agreement.report()}")
    assert agreement.compared >= COMPARED
    assert agreement.share >= AGREEMENT


@pytest.mark.parametrize("variant", ["lld", "lld-non-pie", "mold", "mold-static-pie"])
def test_file_offsets_of_samples_lead_to_the_right_function(variant: str, tmp_path: Path) -> None:
    """These linkers put code at an offset in the file that is not its address; the kernel records offsets of pages."""
    linker, options = CXX[variant]
    need(linker)
    program = symbol_programs.build_cxx(tmp_path, options)
    listing = subprocess.run(["readelf", "-lW", str(program)], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in listing.splitlines() if line.strip().startswith("LOAD")]
    offset, address = next((int(row[1], 16), int(row[2], 16)) for row in rows if "E" in row[6:8])
    names = subprocess.run(["nm", "--defined-only", str(program)], check=True, capture_output=True, text=True).stdout
    start = {row[2]: int(row[0], 16) for row in (line.split() for line in names.splitlines()) if len(row) == 3}
    image = parse_image(program.read_bytes(), str(program))
    wanted = ["main", "plain_c_name"]
    offsets = np.array([start[name] - address + offset for name in wanted], np.uint64)
    symbols = Symbolizer(Locator(), None).symbolize(
        Dso(str(program), image.build_id, DsoKind.FILE), offsets, np.zeros(2, np.bool_)
    )
    outermost = symbols.chains.function[symbols.chains.start[1:] - 1].tolist()
    assert [symbols.functions[each].name for each in outermost] == wanted
    if variant in ("lld", "mold"):
        assert offset != address


@pytest.mark.parametrize("variant", cases(RUST))
def test_rust_agrees_with_both_tools(variant: str, tmp_path: Path) -> None:
    program = symbol_programs.build_rust(tmp_path, RUST[variant])
    assert_agreement(program)


@pytest.mark.parametrize("options", [("--compress-debug-sections=zstd",), ("--compress-debug-sections=zlib",)])
def test_debug_sections_compressed_afterwards(options: Sequence[str], tmp_path: Path) -> None:
    program = symbol_programs.build_cxx(tmp_path, DEBUG)
    packed = tmp_path / "packed"
    tool = shutil.which("objcopy")
    assert tool is not None
    done = subprocess.run([tool, *options, str(program), str(packed)], check=False, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"objcopy does not know {options[0]}")
    addresses = text_addresses(program, 2400, seed=12)
    agreement = compare(program, addresses, symbolized(packed, addresses))
    assert agreement.compared >= COMPARED
    assert agreement.share >= AGREEMENT
