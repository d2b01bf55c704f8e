"""Renderers: values in, bytes out (layer 1)."""
