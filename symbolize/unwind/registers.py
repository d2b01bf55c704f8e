"""DWARF register numbers of x86-64 (System V ABI x86-64, table "DWARF Register Number Mapping")."""

from __future__ import annotations

RBX, RBP, RSP, RIP = 3, 6, 7, 16
REGISTER_COUNT = 17
# What a call leaves unchanged; the caller's values of all others are unknown unless a rule says where they are.
CALLEE_SAVED = (RBX, RBP, 12, 13, 14, 15)
WORD_BYTES = 8
