"""Kernel symbols kept between runs: the answers are those of the text they were made of, and of this boot only."""

from __future__ import annotations

import stat
from pathlib import Path

import numpy as np
import pytest

from symbolize import kernel_cache
from symbolize.kallsyms import KernelSymbols, decode_kernel_symbols, parse_kallsyms
from symbolize.kernel_cache import KernelSymbolCache, KernelSymbolsOnDemand

TEXT = b"""\
ffffffff81000000 T _text
ffffffff81000000 T startup_64
ffffffff81000100 T do_work
ffffffff81000200 D some_data
ffffffff81000300 T last_of_kernel
ffffffffc0001000 t xfs_read\t[xfs]
"""
LATER_TEXT = TEXT + b"ffffffffc0009000 t bpf_prog_1\t[bpf]\n"
BOOT = "01234567-89ab-cdef-0123-456789abcdef"
KERNEL = np.array([0xFFFFFFFF81000150, 0xFFFFFFFF81000000, 0xFFFFFFFF81000300], np.uint64)
MODULE = np.array([0xFFFFFFFF81000150, 0xFFFFFFFFC0001010, 0xFFFFFFFFC0009010], np.uint64)


def parsed(text: bytes = TEXT) -> KernelSymbols:
    symbols = parse_kallsyms(text)
    assert symbols is not None
    return symbols


def test_stored_symbols_answer_as_the_text_does(tmp_path: Path) -> None:
    assert KernelSymbolCache(tmp_path, BOOT).store(parsed())
    loaded = KernelSymbolCache(tmp_path, BOOT).load()
    assert loaded is not None
    assert loaded.names(KERNEL) == ["do_work", "startup_64", "last_of_kernel"]
    assert loaded.modules(KERNEL) == ["", "", ""]
    assert loaded.address("_text") == 0xFFFFFFFF81000000
    assert loaded.address("last_of_kernel") == 0xFFFFFFFF81000300
    assert loaded.address("some_data") is None


def test_modules_are_not_stored(tmp_path: Path) -> None:
    cache = KernelSymbolCache(tmp_path, BOOT)
    cache.store(parsed())
    loaded = cache.load()
    assert loaded is not None
    assert len(loaded) == 3
    assert loaded.spans(KERNEL)
    assert not loaded.spans(MODULE)
    assert not loaded.spans(np.array([0xFFFFFFFF80FFFFFF], np.uint64))


def test_a_symbol_is_found_in_the_first_line_of_the_text(tmp_path: Path) -> None:
    cache = KernelSymbolCache(tmp_path, BOOT)
    cache.store(parsed(b"ffffffff81000000 T _text\n"))
    loaded = cache.load()
    assert loaded is not None
    assert loaded.address("_text") == 0xFFFFFFFF81000000


def test_another_boot_finds_nothing_and_takes_the_place(tmp_path: Path) -> None:
    KernelSymbolCache(tmp_path, BOOT).store(parsed())
    other = KernelSymbolCache(tmp_path, BOOT.replace("0", "f"))
    assert other.load() is None
    assert other.store(parsed())
    assert KernelSymbolCache(tmp_path, BOOT).load() is None
    assert len(list((tmp_path / "kernel").iterdir())) == 1


def test_without_a_boot_id_nothing_is_stored(tmp_path: Path) -> None:
    cache = KernelSymbolCache(tmp_path, "")
    assert not cache.store(parsed())
    assert cache.load() is None
    assert list(tmp_path.iterdir()) == []


def test_only_the_user_may_read_the_file(tmp_path: Path) -> None:
    KernelSymbolCache(tmp_path, BOOT).store(parsed())
    (file,) = (tmp_path / "kernel").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_directory_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "kernel").write_bytes(b"a file")
    assert not KernelSymbolCache(tmp_path, BOOT).store(parsed())
    assert KernelSymbolCache(tmp_path, BOOT).load() is None


def test_modules_between_kernel_symbols_are_not_encoded() -> None:
    between = b"ffffffff81000000 T a\nffffffff81000100 t b\t[m]\nffffffff81000200 T c\n"
    assert parsed(between).encode_kernel_proper() is None


@pytest.mark.parametrize("length", [0, 10, 46, 60, -1])
def test_damaged_content_is_refused(length: int) -> None:
    pieces = parsed().encode_kernel_proper()
    assert pieces is not None
    data = b"".join(pieces)
    assert decode_kernel_symbols(data) is not None
    assert decode_kernel_symbols(data[:length]) is None
    assert decode_kernel_symbols(b"\n" + data) is None


def test_addresses_outside_of_the_kernel_proper_are_asked_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = KernelSymbolCache(tmp_path, BOOT)
    cache.store(parsed())
    loaded = cache.load()
    assert loaded is not None
    reads: list[int] = []

    def read_now() -> KernelSymbols:
        reads.append(1)
        return parsed(LATER_TEXT)

    monkeypatch.setattr(kernel_cache, "read_kallsyms", read_now)
    symbols = KernelSymbolsOnDemand(loaded)
    assert symbols.names(KERNEL) == ["do_work", "startup_64", "last_of_kernel"]
    assert reads == []
    garbage = np.array([0x8000000000000001, 0xFFFFFFFF00000380, KERNEL[0]], np.uint64)
    assert symbols.names(garbage) == ["", "", "do_work"]
    assert reads == []
    assert symbols.names(MODULE) == ["do_work", "xfs_read", "bpf_prog_1"]
    assert symbols.modules(MODULE) == ["", "xfs", "bpf"]
    assert reads == [1]


def test_symbols_of_the_running_kernel_survive_the_cache(tmp_path: Path) -> None:
    now = kernel_cache.read_kallsyms()
    if now is None or not kernel_cache.running_boot_id():
        pytest.skip("kernel addresses or the boot ID are hidden here")
    cache = KernelSymbolCache(tmp_path)
    assert cache.store(now)
    loaded = cache.load()
    assert loaded is not None
    start = now.address("_text") or now.address("_stext")
    assert start is not None
    addresses = np.arange(start, start + 0x400000, 0x333, dtype=np.uint64)
    assert loaded.names(addresses) == now.names(addresses)
    assert len({name for name in loaded.names(addresses) if name}) > 100
