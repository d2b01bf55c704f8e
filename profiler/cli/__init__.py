"""The command line, one file per command (layer 4)."""
