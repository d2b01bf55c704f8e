"""perf.data parser: bytes in, records out (layer 1)."""
