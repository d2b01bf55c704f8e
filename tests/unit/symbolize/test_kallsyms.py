"""Kernel symbols: hand-made text against hand arithmetic, and this kernel's own text against a plain reading of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from symbolize.kallsyms import KernelSymbols, parse_kallsyms

TEXT = b"""\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T startup_64
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000100 t __local_alias
ffffffff81000100 W weak_alias_with_a_long_name
ffffffff81000100 T do_work
ffffffff81000200 D some_data
ffffffff81000300 T last_of_kernel
ffffffffc0001000 t module_start\t[xfs]
ffffffffc0001040 T xfs_read\t[xfs]
ffffffffc0009000 t other_init\t[btrfs]
"""


def symbols(text: bytes = TEXT) -> KernelSymbols:
    parsed = parse_kallsyms(text)
    assert parsed is not None
    return parsed


def names(parsed: KernelSymbols, *addresses: int) -> list[str]:
    return parsed.names(np.array(addresses, np.uint64))


def test_names_and_modules() -> None:
    addresses = [0xFFFFFFFF81000100, 0xFFFFFFFF810001FF, 0xFFFFFFFFC0001000, 0xFFFFFFFFC0001041]
    assert names(symbols(), *addresses) == ["do_work", "do_work", "module_start", "xfs_read"]
    assert symbols().modules(np.array(addresses, np.uint64)) == ["", "", "xfs", "xfs"]


def test_aliases_are_chosen_as_perf_does() -> None:
    assert names(symbols(), 0xFFFFFFFF81000000, 0xFFFFFFFF81000150) == ["startup_64", "do_work"]


def test_data_and_absolute_symbols_are_left_out() -> None:
    assert names(symbols(), 0xFFFFFFFF81000200, 0) == ["do_work", ""]


def test_last_symbol_of_kernel_and_of_text_end_with_the_page_behind() -> None:
    assert names(symbols(), 0xFFFFFFFF81001FFF, 0xFFFFFFFF81002000) == ["last_of_kernel", ""]
    assert names(symbols(), 0xFFFFFFFFC000AFFF, 0xFFFFFFFFC000B000) == ["other_init", ""]


def test_addresses_below_and_above_everything() -> None:
    assert names(symbols(), 0, 0xFFFFFFFF80FFFFFF, 2**64 - 1) == ["", "", ""]
    assert names(symbols()) == []


def test_hidden_addresses_are_refused() -> None:
    hidden = b"".join(b"0" * 16 + line[16:] + b"\n" for line in TEXT.splitlines())
    assert parse_kallsyms(hidden) is None


@pytest.mark.parametrize("text", [b"", b"\n\n", b"not kallsyms at all, but long enough\n", b"ffffffff81000000 T", bytes(1000)])
def test_other_text_holds_no_symbols(text: bytes) -> None:
    assert parse_kallsyms(text) is None


def test_odd_lines_are_passed_over() -> None:
    parsed = symbols(b"garbage\n" + TEXT + b"ffffffffgggggggg T nothing\nffffffffc000f000 T no_newline_at_the_end")
    assert names(parsed, 0xFFFFFFFF81000100, 0xFFFFFFFFC000F000) == ["do_work", "no_newline_at_the_end"]


def test_address_of_a_name() -> None:
    parsed = symbols()
    assert parsed.address("_text") == 0xFFFFFFFF81000000
    assert parsed.address("do_work") == 0xFFFFFFFF81000100
    assert parsed.address("some_data") is None
    assert parsed.address("text") is None


def test_this_kernel_equals_a_plain_reading() -> None:
    text = Path("/proc/kallsyms").read_bytes()
    parsed = parse_kallsyms(text)
    if parsed is None:
        pytest.skip("kernel addresses are hidden here")
    by_address: dict[int, set[str]] = {}
    for line in text.decode().splitlines():
        address, kind, name, *_ = line.split()
        if kind in "tTwW" and int(address, 16):
            by_address.setdefault(int(address, 16), set()).add(name)
    picked = sorted(by_address)[:: max(1, len(by_address) // 5000)]
    found = names(parsed, *picked)
    assert len(picked) > 1000
    assert all(name in by_address[address] for name, address in zip(found, picked, strict=True))
    assert len(parsed) == len(by_address)
