"""Every distinct address that walks meet, resolved once: where its code lies, and which rule is in force there.

Stacks repeat a few thousand addresses millions of times.  A look-up of a known one costs less than resolving it and finding its
rule, and what is found is shared by all frames.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from profiler.model.arrays import Int32Column, Int64Column, UInt8Column, UInt64Column, distinct
from profiler.model.interner import Interner
from symbolize.unwind.code_rules import CodeRules
from symbolize.unwind.rule_rows import NO_RULES
from symbolize.unwind.stacks import AddressMap

# A key is the space's number, the address, and a bit for return addresses.
_SPACE_SHIFT = np.uint64(48)
_ADDRESS_MASK = np.uint64(2**48 - 1)
_ADDRESS_LIMIT = 1 << 47
# The number that stands before addresses which are too large for a key; no process can have code there.
_NOWHERE = (1 << 16) - 1
_MOST_SPACES = _NOWHERE - 1


class CodeSites:
    """Sites are numbered from 0 in the order in which they are met; columns are indexed by site and longer than ``len(self)``.

    ``dso``: -1 = unmapped.  ``offset``: file offset as recorded (of a caller: that of the return address itself), the address
    where ``dso`` is -1.  ``row``: the rule in force; the others are its ``RuleColumns``.
    """

    def __init__(self, address_map: AddressMap, code: CodeRules) -> None:
        self.address_map = address_map
        self._code = code
        self._keys = Interner()
        self._wide = Interner(bits=8)
        self._number_of_space = np.zeros(1, np.uint64)
        self._spaces: list[int] = [0]
        self._allocate(1 << 10)

    def __len__(self) -> int:
        return len(self._keys)

    def _allocate(self, size: int) -> None:
        self.dso: Int32Column = np.zeros(size, np.int32)
        self.offset: UInt64Column = np.zeros(size, np.uint64)
        self.row: Int32Column = np.zeros(size, np.int32)
        self.flags: UInt8Column = np.zeros(size, np.uint8)
        self.cfa_offset: UInt64Column = np.zeros(size, np.uint64)
        self.pointer_offset: UInt64Column = np.zeros(size, np.uint64)
        self.return_offset: UInt64Column = np.zeros(size, np.uint64)

    def space_keys(self, address_spaces: Int64Column) -> UInt64Column | None:
        """The part of the keys of frames in these spaces, for ``sites``; ``None`` when there is no room for so many spaces."""
        highest = int(address_spaces.max(initial=0))
        if highest >= len(self._number_of_space):
            more = np.zeros(2 * highest + 1 - len(self._number_of_space), np.uint64)
            self._number_of_space = np.concatenate([self._number_of_space, more])
        numbers = self._number_of_space[address_spaces]
        if not numbers.all():
            new = distinct(address_spaces[numbers == 0])
            if len(self._spaces) + len(new) > _MOST_SPACES:
                return None
            self._number_of_space[new] = np.arange(len(self._spaces), len(self._spaces) + len(new))
            self._spaces += new.tolist()
            numbers = self._number_of_space[address_spaces]
        keys: UInt64Column = numbers << _SPACE_SHIFT
        return keys

    def sites(self, space_keys: UInt64Column, addresses: UInt64Column, is_caller: bool | UInt64Column) -> Int32Column:
        """The site of each frame; addresses of callers are return addresses."""
        keys = addresses << np.uint64(1)
        keys |= np.uint64(is_caller) if isinstance(is_caller, bool) else is_caller
        keys |= space_keys
        if len(addresses) and int(addresses.max()) >= _ADDRESS_LIMIT:
            is_wide = addresses >= np.uint64(_ADDRESS_LIMIT)
            # Shifted by one, since 0 cannot be interned; no code is at the address of all ones.
            number = self._wide.intern(np.maximum(addresses[is_wide] + np.uint64(1), np.uint64(1)))[0]
            keys[is_wide] = number.astype(np.uint64) | (np.uint64(_NOWHERE) << _SPACE_SHIFT)
        numbers, new_keys = self._keys.intern(keys)
        if len(new_keys):
            self._resolve(new_keys)
        return numbers

    def _resolve(self, keys: UInt64Column) -> None:
        """Fills in the columns of new sites."""
        start, end = len(self._keys) - len(keys), len(self._keys)
        if end > len(self.dso):
            self._grow(end)
        space = (keys >> _SPACE_SHIFT).astype(np.int64)
        is_inside = space != _NOWHERE
        inside = keys[is_inside]
        dso, offset = np.full(len(keys), -1, np.int32), np.zeros(len(keys), np.uint64)
        row = np.full(len(keys), NO_RULES, np.int32)
        dso[is_inside], offset[is_inside], row[is_inside] = self._inside(space[is_inside], inside)
        if not is_inside.all():
            wide = (keys[~is_inside] & _ADDRESS_MASK).astype(np.int64)
            offset[~is_inside] = self._wide.keys()[wide] - np.uint64(1)
        self.dso[start:end], self.offset[start:end], self.row[start:end] = dso, offset, row
        rules = self._code.columns()
        self.flags[start:end], self.cfa_offset[start:end] = rules.flags[row], rules.cfa_offset[row]
        self.pointer_offset[start:end], self.return_offset[start:end] = rules.pointer_offset[row], rules.return_offset[row]

    def _inside(self, space: Int64Column, keys: UInt64Column) -> tuple[Int32Column, UInt64Column, Int32Column]:
        """(DSO, offset, rule row) of keys that hold their address."""
        back = keys & np.uint64(1)
        address = (keys & _ADDRESS_MASK) >> np.uint64(1)
        dso, lookup = self.address_map.resolve(np.array(self._spaces)[space], address - back)
        row = np.empty(len(keys), np.int32)
        caller, exact = np.flatnonzero(back), np.flatnonzero(back == 0)
        row[caller] = self._code.rows(dso[caller], lookup[caller])
        row[exact] = self._code.rows_at_exact_address(dso[exact], lookup[exact])
        return dso, np.where(dso >= 0, lookup + back, address), row

    def _grow(self, size: int) -> None:
        before = self._columns()
        self._allocate(max(2 * len(self.dso), size))
        for old, new in zip(before, self._columns(), strict=True):
            new[: len(old)] = old

    def _columns(self) -> tuple[npt.NDArray[Any], ...]:
        return self.dso, self.offset, self.row, self.flags, self.cfa_offset, self.pointer_offset, self.return_offset
