"""Captures from the text formats of other tools."""
