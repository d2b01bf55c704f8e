"""Persistent cache of unwinding rules by build ID, one file of columns each beside those of symbolization."""

from __future__ import annotations

import json

import numpy as np

from symbolize.cache import SymbolCache
from symbolize.column_file import Column, ColumnFormat, decode_columns, encode_columns
from symbolize.elf.call_frame_program import RegisterRule
from symbolize.unwind.rule_rows import RuleRow
from symbolize.unwind.stored_rules import StoredRules

# Raise it whenever the columns, or what is compiled into rules, change.
FORMAT_VERSION = 2
_FORMAT = ColumnFormat(b"slotscope unwind rules\n", FORMAT_VERSION, ("<i8", "<i8", "<i8", "<i4", "|u1"))
_SUFFIX = ".rules"
# How a rule is written: [kind or register, number], expressions as hexadecimal text; None for a CFA that is not defined.
_Written = list[int | str] | None


class UnwindRuleCache:
    """``RuleStore`` in the directory of ``cache``; files that are damaged or of another version are as good as absent."""

    def __init__(self, cache: SymbolCache) -> None:
        self._cache = cache
        self._known: dict[str, RuleRow] = {}

    def load_rules(self, build_id: bytes) -> StoredRules | None:
        data = self._cache.read(build_id, _SUFFIX)
        return decode_rules(data, self._known) if data else None

    def store_rules(self, build_id: bytes, rules: StoredRules) -> bool:
        return self._cache.write(build_id, _SUFFIX, encode_rules(rules))


def encode_rules(rules: StoredRules) -> list[bytes]:
    """The file's content in pieces."""
    text = "\n".join(json.dumps(_written_row(row), separators=(",", ":")) for row in rules.rows)
    columns: list[Column] = [rules.layout, rules.pages, rules.length, rules.rule]
    return encode_columns(_FORMAT, [*columns, np.frombuffer(text.encode(), np.uint8)])


def decode_rules(data: bytes, known: dict[str, RuleRow]) -> StoredRules | None:
    """The rules in a cache file's content, None when it is damaged or of another version.  ``known``: rows by their text, as
    read before; libraries share most of them."""
    columns = decode_columns(_FORMAT, data)
    if columns is None:
        return None
    layout, pages, length, rule, text = columns
    try:
        lines = text.tobytes().decode().splitlines()
        for line in set(lines).difference(known):
            known[line] = _read_row(*json.loads(line))
    except (ValueError, TypeError, RecursionError):
        return None
    stored = StoredRules(layout, pages, length, rule, tuple(known[line] for line in lines))
    return stored if stored.is_consistent() else None


def _written_row(row: RuleRow) -> list[object]:
    rules = [[register, *_written(rule)] for register, rule in row.rules]
    return [None if row.cfa is None else _written(row.cfa), rules, row.is_signal_frame, row.return_register]


def _written(rule: RegisterRule) -> list[int | str]:
    kind, value = rule
    return [kind, value.hex() if isinstance(value, bytes) else value]


def _read_row(cfa: _Written, rules: list[list[int | str]], is_signal_frame: bool, return_register: int) -> RuleRow:
    read = tuple((int(register), _read(kind, value)) for register, kind, value in rules)
    return RuleRow(None if cfa is None else _read(*cfa), read, bool(is_signal_frame), int(return_register))


def _read(kind: int | str, value: int | str) -> RegisterRule:
    return int(kind), bytes.fromhex(value) if isinstance(value, str) else value
