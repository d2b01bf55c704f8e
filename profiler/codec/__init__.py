"""The capture container: bytes to Capture and back (layer 1)."""
