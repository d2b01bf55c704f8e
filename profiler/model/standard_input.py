"""The name under which standard input is asked for."""

from __future__ import annotations

from pathlib import Path

# A file that is really called so is named by its absolute path.
STANDARD_INPUT = Path("-")
