"""Immutable tables and value types (layer 0)."""
