"""A host without any binary."""

from __future__ import annotations

from profiler.model.dso import Dso


class NoImages:
    def image(self, dso: Dso) -> None:
        return None
