"""Which renderer shows an experiment in the format that was asked for."""

from __future__ import annotations
