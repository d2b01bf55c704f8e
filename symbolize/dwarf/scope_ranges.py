"""Address ranges of functions and inlined calls, for many DIEs at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from profiler.model.arrays import Int32Column, Int64Column, UInt64Column
from profiler.model.quick_dataclass import dataclass
from symbolize.dwarf.abbreviations import Abbreviation
from symbolize.dwarf.constants import INDEXED_ADDRESS_FORMS, DW_AT_high_pc, DW_AT_low_pc, DW_AT_ranges, DW_FORM_addr
from symbolize.dwarf.intervals import Intervals, paint
from symbolize.dwarf.ranges import Range, RangeReader
from symbolize.dwarf.sections import in_text
from symbolize.dwarf.unit_root import UnitRoot


@dataclass(frozen=True, slots=True)
class ScopeRows:
    """``values``: uint64[n, SCOPE_ATTRIBUTES], 0 = absent.  ``entry``: row in ``entries`` of each DIE's abbreviation."""

    values: npt.NDArray[np.uint64]
    entry: Int64Column
    entries: list[Abbreviation]

    def has_form(self, attribute: int, forms: frozenset[int]) -> npt.NDArray[np.bool_]:
        """Whether each DIE has ``attribute`` in one of ``forms``."""
        return np.array([entry.shape.forms.get(attribute, 0) in forms for entry in self.entries], np.bool_)[self.entry]


def innermost(root: UnitRoot, rows: ScopeRows) -> Intervals:
    """The last of the DIEs that covers an address owns it.  Raises one of MALFORMED when a range list is damaged."""
    low, high, owner = _all_ranges(root, rows)
    inside = in_text(root.sections, low, high)
    return paint(low[inside], high[inside], owner[inside])


def _all_ranges(root: UnitRoot, rows: ScopeRows) -> tuple[UInt64Column, UInt64Column, Int32Column]:
    """(low, high, row of the DIE) by row."""
    listed_forms = [entry.shape.forms.get(DW_AT_ranges, 0) for entry in rows.entries]
    has_list = np.array(listed_forms, np.int64)[rows.entry] > 0
    listed, spans = np.flatnonzero(has_list), np.flatnonzero(~has_list)
    pairs: list[Range] = []
    counts: list[int] = []
    reader = RangeReader(root)
    for value, entry in zip(rows.values[listed, 2].tolist(), rows.entry[listed].tolist(), strict=True):
        ranges = reader.read(listed_forms[entry], value)
        counts.append(len(ranges))
        pairs += ranges
    table = np.array(pairs, np.uint64).reshape(-1, 2)
    low, high = _spans(root, ScopeRows(rows.values[spans], rows.entry[spans], rows.entries))
    owner = np.concatenate([spans, np.repeat(listed, counts)])
    order = np.argsort(owner, kind="stable")
    low, high = np.concatenate([low, table[:, 0]]), np.concatenate([high, table[:, 1]])
    return low[order], high[order], owner[order].astype(np.int32)


def _spans(root: UnitRoot, rows: ScopeRows) -> tuple[UInt64Column, UInt64Column]:
    """DW_AT_low_pc and DW_AT_high_pc as addresses; a high_pc that is no address by its form is a length."""
    low, high = rows.values[:, 0].copy(), rows.values[:, 1].copy()
    for column, attribute in ((low, DW_AT_low_pc), (high, DW_AT_high_pc)):
        indexed = rows.has_form(attribute, INDEXED_ADDRESS_FORMS)
        if np.any(indexed):
            column[indexed] = root.address_table()[column[indexed].astype(np.int64)]
    is_address = rows.has_form(DW_AT_high_pc, INDEXED_ADDRESS_FORMS | {DW_FORM_addr})
    return low, np.where(is_address, high, low + high)
