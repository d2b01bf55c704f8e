"""How long to wait before something that failed is tried again."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

FIRST_S = 0.5
LONGEST_S = 60.0
REFUSED_S = 300.0


@dataclass(slots=True)
class Backoff:
    """Full jitter: a wait is anything from 0 to a bound that doubles with every failure, so that agents of one server that came
    back do not ask all at once."""

    first_s: float = FIRST_S
    longest_s: float = LONGEST_S
    random: random.Random = field(default_factory=random.Random)
    failures: int = 0

    def succeeded(self) -> None:
        self.failures = 0

    def failed(self, at_least_s: float = 0.0) -> float:
        """Seconds to wait now.  ``at_least_s``: as the server asked."""
        bound = min(self.longest_s, self.first_s * 2.0 ** min(self.failures, 30))
        self.failures += 1
        return at_least_s + self.random.uniform(0.0, bound)
