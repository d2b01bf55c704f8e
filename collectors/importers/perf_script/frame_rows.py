"""Printed frames into rows of the frame table, each distinct one once."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from collectors.importers.perf_script.frame_line import FrameText
from collectors.importers.text_dsos import text_dso
from collectors.importers.text_tables import TextFrame, TextTables
from profiler.model.frame_table import CpuMode
from symbolize.demangle import demangle

_MANGLED_PREFIXES = ("_Z", "_R", "__Z", "___Z", "?")
_RUST_HASH = re.compile(r"^[\w$.:]+::h[0-9a-f]{16}$")


@dataclass(slots=True)
class _Rows:
    """``exact``, ``caller``: rows for the innermost frame and for one that called another, -1 = not asked for yet."""

    frame: TextFrame
    is_kernel: bool
    exact: int = -1
    caller: int = -1


@dataclass(slots=True)
class FrameRows:
    """Rows of frames; names are made readable."""

    tables: TextTables
    _known: dict[FrameText, _Rows] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)

    def row(self, frame: FrameText, is_exact: bool) -> int:
        """Row of a frame; ``is_exact``: its address is where it ran, not where it goes on after a call."""
        rows = self._known.get(frame) or self._new(frame)
        if is_exact:
            if rows.exact < 0:
                rows.exact = self.tables.frame(rows.frame)
            return rows.exact
        if rows.caller < 0:
            rows.caller = self.tables.frame(rows.frame._replace(is_return_address=True))
        return rows.caller

    def is_kernel(self, frame: FrameText) -> bool:
        return (self._known.get(frame) or self._new(frame)).is_kernel

    def _new(self, frame: FrameText) -> _Rows:
        address = max(frame.address, 0)
        text = TextFrame(frame.dso, address, self._name(frame.symbol), is_return_address=False)
        rows = self._known[frame] = _Rows(text, text_dso(frame.dso, address)[1] is CpuMode.KERNEL)
        return rows

    def _name(self, symbol: str) -> str:
        is_half_demangled = _RUST_HASH.search(symbol) is not None
        if not is_half_demangled and not symbol.startswith(_MANGLED_PREFIXES):
            return symbol
        if symbol not in self._names:
            self._names[symbol] = demangle(_mangled_again(symbol) if is_half_demangled else symbol)
        return self._names[symbol]


def _mangled_again(symbol: str) -> str:
    """The linkage name of a Rust function that perf demangled as if it were C++: "$LT$" and the like are still in it."""
    return "_ZN" + "".join(f"{len(part)}{part}" for part in symbol.split("::")) + "E"
