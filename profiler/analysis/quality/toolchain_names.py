"""What tells the toolchains of two arms apart: compilers write all their options into the debug information."""

from __future__ import annotations

from collections.abc import Iterable, Set

_SEPARATOR = "; "
_Names = tuple[str, ...]


def distinguishing_names(arms: tuple[Set[str], Set[str]]) -> tuple[_Names, _Names]:
    """Each arm's toolchains, sorted: compilers that not all of them have, without options; compilers that all have where their
    options differ, with those that not all have.

    A toolchain is text like "GNU C17 12.2.0 -g -O2; GNU AS 2.40".  Whole where less would not tell the arms apart: the same
    options in another order.
    """
    options = _options_of_compilers(text for arm in arms for text in arm)
    short = tuple(sorted({_differing(text, options) for text in arm}) for arm in arms)
    first, second = short if short[0] != short[1] else tuple(sorted(arm) for arm in arms)
    return tuple(first), tuple(second)


def _options_of_compilers(texts: Iterable[str]) -> dict[str, list[_Names]]:
    """Of compilers that every text has: the options of each mention."""
    mentions = [[_parts(producer) for producer in text.split(_SEPARATOR)] for text in texts]
    everywhere = set.intersection(*({compiler for compiler, _ in of_text} for of_text in mentions)) if mentions else set()
    found: dict[str, list[_Names]] = {compiler: [] for compiler in everywhere}
    for compiler, options in (mention for of_text in mentions for mention in of_text):
        if compiler in found:
            found[compiler].append(options)
    return found


def _differing(text: str, options: dict[str, list[_Names]]) -> str:
    shown = []
    for compiler, own in map(_parts, text.split(_SEPARATOR)):
        of_all = options.get(compiler, [])
        if not of_all:
            shown.append(compiler)
        elif len(set(of_all)) > 1:
            shared = set.intersection(*map(set, of_all))
            shown.append(" ".join([compiler, *(option for option in own if option not in shared)]))
    return _SEPARATOR.join(dict.fromkeys(shown))


def _parts(producer: str) -> tuple[str, _Names]:
    """Name and version, and the options."""
    words = producer.split()
    start = next((place for place, word in enumerate(words) if word.startswith("-")), len(words))
    return " ".join(words[:start]), tuple(words[start:])
