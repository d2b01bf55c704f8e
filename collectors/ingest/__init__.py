"""Records into Capture tables: mappings in time, stacks, unwinding (layer 1)."""
