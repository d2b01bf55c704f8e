"""Readable names for C++ (Itanium), Rust legacy and Rust v0 symbols.

Compilers append clone suffixes (".cold", ".constprop.0", ".llvm.123") and linkers versions ("@GLIBC_2.34") to a mangled name.
They are no part of the mangling: they are split off first and kept outside of the readable name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

MANGLED_PREFIXES = ("_Z", "_R")
# Rust's legacy mangling is valid C++ mangling with a last path component "h" + 16 hexadecimal digits.
_RUST_LEGACY = re.compile(r"(_ZN.*17h([0-9a-f]{16})E)(.*)", re.DOTALL)
_SUFFIX_PARTS = re.compile(r"\.llvm\.[0-9A-Fa-f]+|\.[^.\d][^.]*(?:\.\d+)*|\.\d+[^.]*(?:\.\d+)*")
# A hash has more different digits than a word that happens to look like one.
_FEWEST_HASH_DIGITS = 5
# Demanglers expand back references, so that the text can grow far beyond the symbol.
LONGEST_SYMBOL = 20_000


def demangle(linkage_name: str) -> str:
    """The readable form of a linkage name; names that are not mangled, or damaged, are returned as they are."""
    if not linkage_name.startswith(MANGLED_PREFIXES) or len(linkage_name) > LONGEST_SYMBOL:
        return linkage_name
    core, clones, version = split_suffix(linkage_name)
    readable = _demangle_core(core)
    if readable is None:
        return linkage_name
    return readable + "".join(f" [clone {part}]" for part in _SUFFIX_PARTS.findall(clones)) + version


def split_suffix(linkage_name: str) -> tuple[str, str, str]:
    """(mangled name, clone suffix with its leading dot, version with its leading "@"); the last two may be empty."""
    rest, at, version = linkage_name.partition("@")
    legacy = _RUST_LEGACY.fullmatch(rest)
    if legacy is not None:
        core, clones = legacy[1], legacy[3]
        return (core, clones, at + version) if not clones or clones[0] == "." else (rest, "", at + version)
    core, dot, clones = rest.partition(".")
    return core, dot + clones, at + version


def is_rust_legacy(core: str) -> bool:
    """Whether a mangled name without suffix is Rust's legacy mangling."""
    legacy = _RUST_LEGACY.fullmatch(core)
    return legacy is not None and not legacy[3] and len(set(legacy[2])) >= _FEWEST_HASH_DIGITS


def _demangle_core(core: str) -> str | None:
    if core.startswith("_R"):
        return _first_answer(core, _llvm_demangler)
    if is_rust_legacy(core):
        return _first_answer(core, _rust_legacy_demangler, _llvm_demangler)
    return _first_answer(core, _llvm_demangler, _runtime_demangler)


def _first_answer(core: str, *demanglers: Callable[[], Callable[[str], str | None]]) -> str | None:
    for demangler in demanglers:
        readable = demangler()(core)
        if readable is not None:
            return readable
    return None


@cache
def _llvm_demangler() -> Callable[[str], str | None]:
    """C++ and Rust v0, by LLVM's demangler."""
    import pycxxfilt

    def call(core: str) -> str | None:
        try:
            readable: str | None = pycxxfilt.demangle(core)
        except ValueError:
            return None
        return readable

    return call


@cache
def _rust_legacy_demangler() -> Callable[[str], str | None]:
    """Rust's legacy mangling, without the hash."""
    import pyderust

    def call(core: str) -> str | None:
        try:
            readable: str = pyderust.demangle(core)
        except pyderust.DemangleError:
            return None
        return readable

    return call


@cache
def _runtime_demangler() -> Callable[[str], str | None]:
    """``__cxa_demangle`` of the C++ runtime, for the names that LLVM's demangler refuses; answers nothing without it."""
    import ctypes

    try:
        function = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
        free = ctypes.CDLL(None).free
    except (OSError, AttributeError):
        return lambda core: None
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    free.argtypes = [ctypes.c_void_p]

    def call(core: str) -> str | None:
        if "\0" in core:
            return None
        status = ctypes.c_int()
        found = function(core.encode("utf-8", "replace"), None, None, ctypes.byref(status))
        if not found:
            return None
        readable = ctypes.string_at(found).decode("utf-8", "replace")
        free(found)
        return readable

    return call
