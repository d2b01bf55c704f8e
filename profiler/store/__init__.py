"""Captures on disk and their catalog (layer 2)."""
