"""A pattern of a category rule: one regular expression, or several of which one must be found."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class RulePattern:
    """``alternatives``: as they stand in the rule file."""

    alternatives: tuple[str, ...]

    @cached_property
    def text(self) -> str:
        """All alternatives as one regular expression."""
        if len(self.alternatives) == 1:
            return self.alternatives[0]
        return "|".join(f"(?:{part})" for part in self.alternatives)

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """Finds any of the alternatives.  Compiled when first asked for: a report of a small file needs few of all patterns."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # "[[" is read as today's Python reads it
            return re.compile(self.text)

    def search(self, text: str) -> re.Match[str] | None:
        return self.compiled.search(text)

    def alternative_found_in(self, texts: Iterable[str]) -> str:
        """The first alternative that is found in one of ``texts``; the whole pattern when none is."""
        names = tuple(texts)
        return next((part for part in self.alternatives if any(re.search(part, name) for name in names)), self.text)
