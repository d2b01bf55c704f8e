"""What an experiment's round has captured before the round is judged: it is there, and does not count yet."""

from __future__ import annotations

UNJUDGED = "its round is not judged yet"
