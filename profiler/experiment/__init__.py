"""Experiments, from their plan to what they found (layer 3)."""
