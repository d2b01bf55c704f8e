"""DWARF readers: line tables and inline trees (layer 1)."""
