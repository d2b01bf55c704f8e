"""Batch unwinder over DWARF call frame information (layer 1)."""
