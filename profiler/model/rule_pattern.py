"""A pattern of a category rule: one regular expression, or several of which one must be found."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RulePattern:
    """``alternatives``: as they stand in the rule file.  ``compiled`` finds any of them."""

    alternatives: tuple[str, ...]
    compiled: re.Pattern[str]

    @property
    def text(self) -> str:
        """All alternatives as one regular expression."""
        return self.compiled.pattern

    def search(self, text: str) -> re.Match[str] | None:
        return self.compiled.search(text)

    def alternative_found_in(self, texts: Iterable[str]) -> str:
        """The first alternative that is found in one of ``texts``; the whole pattern when none is."""
        names = tuple(texts)
        return next((part for part in self.alternatives if any(re.search(part, name) for name in names)), self.text)
