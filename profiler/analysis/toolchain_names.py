"""What tells the toolchains of two arms apart: compilers write all their options into the debug information."""

from __future__ import annotations

from collections.abc import Set


def distinguishing_names(arms: tuple[Set[str], Set[str]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Each arm's toolchains as compiler, version and those options that not all of them have, sorted.

    Whole where that would not tell the arms apart: the same options in another order.
    """
    every = [_parts(text) for arm in arms for text in arm]
    shared = set.intersection(*(set(options) for _, options in every)) if every else set()
    short = tuple(sorted(_without(shared, text) for text in arm) for arm in arms)
    first, second = short if short[0] != short[1] else tuple(sorted(arm) for arm in arms)
    return tuple(dict.fromkeys(first)), tuple(dict.fromkeys(second))


def _parts(text: str) -> tuple[list[str], list[str]]:
    """Words before the first option, and from there on."""
    words = text.split()
    start = next((place for place, word in enumerate(words) if word.startswith("-")), len(words))
    return words[:start], words[start:]


def _without(shared: set[str], text: str) -> str:
    compiler, options = _parts(text)
    return " ".join([*compiler, *(option for option in options if option not in shared)])
