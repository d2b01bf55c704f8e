"""A function as it is shown and compared, and where its name came from."""

from __future__ import annotations

from enum import IntEnum

from profiler.model.quick_dataclass import dataclass


class NameSource(IntEnum):
    """Where a function's name came from; decides how far it can be compared."""

    SYMBOL_TABLE = 0  # ELF symbol: the outermost frame of a chain
    LINKAGE_NAME = 1  # DW_AT_linkage_name of the inline frame's abstract origin
    QUALIFIED = 2  # DW_AT_name qualified through its DIE parents
    PARTIAL = 3  # line tables only: directory of the frame's own source file + bare name
    CAPTURE = 4  # known at capture: kernel, vDSO, JIT, imported text
    UNRESOLVED = 5  # "dso+0xoffset"


@dataclass(frozen=True, slots=True)
class Function:
    """``name`` shown, complete; ``linkage_name`` mangled or equal to name; ``key`` canonical across builds
    (``function_key``); ``trait_key`` the second key of ``<T as Trait>::f`` ("Trait::f"), else empty."""

    name: str
    linkage_name: str
    key: str
    trait_key: str
    name_source: NameSource
