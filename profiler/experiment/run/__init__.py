"""Runs, one after the other: prepared, executed, recorded, kept."""
