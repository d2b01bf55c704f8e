"""ELF readers: segments, build IDs, symbols, binary facts (layer 1)."""
