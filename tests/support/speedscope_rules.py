"""What speedscope's importer demands beyond its schema (1.25.0, src/lib/file-format.ts and profile.ts)."""

from __future__ import annotations

import math
from typing import Any


def check_profiles(document: dict[str, Any]) -> None:
    """Raises ``AssertionError`` where the importer would throw or show nonsense."""
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = document["shared"]["frames"]
    names = [frame["name"] for frame in frames]
    assert len(set(names)) == len(names), "the viewer never merges frames of one name"
    assert 0 <= document.get("activeProfileIndex", 0) < len(document["profiles"])
    for profile in document["profiles"]:
        samples, weights = profile["samples"], profile["weights"]
        assert len(samples) == len(weights)
        assert all(math.isfinite(weight) and weight > 0 for weight in weights)
        assert all(sample and all(0 <= frame < len(frames) for frame in sample) for sample in samples)
        assert profile["startValue"] <= profile["endValue"]
        assert sum(weights) == profile["endValue"] - profile["startValue"]
