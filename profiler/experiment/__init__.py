"""Schedules and the runner of recordings (layer 3)."""
