"""Texts in which a regular expression is found: a few for each way through it."""

from __future__ import annotations

from profiler.rules.regex_tree import Anchor, Choice, RegexTree, Repeat, Row, Symbols, Unknown

_MOST_EXAMPLES = 64
_LONGEST = 2000
_LIKELY_CHARACTERS = "avTx01_:. "


class NoExamples(Exception):
    """The texts would be too long, or the pattern is nested too deeply."""


def example_texts(tree: RegexTree) -> tuple[str, ...]:
    """At most 64 distinct texts that the tree takes as a whole, in a fixed order.  Conditions that trees cannot express are
    left out, so the pattern need not be found in all of them.  Raises ``NoExamples``."""
    try:
        return tuple(dict.fromkeys(_texts(tree)))[:_MOST_EXAMPLES]
    except RecursionError:
        raise NoExamples from None


def _texts(tree: RegexTree) -> list[str]:
    if isinstance(tree, Symbols):
        return _characters(tree)
    if isinstance(tree, Choice):
        return [text for option in tree.options for text in _texts(option)][:_MOST_EXAMPLES]
    if isinstance(tree, Repeat):
        return _repeated(tree)
    if isinstance(tree, Anchor | Unknown):
        return [""]
    return _joined(tree)


def _characters(tree: Symbols) -> list[str]:
    likely = [character for character in _LIKELY_CHARACTERS if character in tree.characters]
    return likely[:3] or sorted(tree.characters)[:1]


def _repeated(tree: Repeat) -> list[str]:
    counts = [tree.least, *([tree.least + 1] if tree.most is None or tree.most > tree.least else [])]
    parts = _texts(tree.part)
    if max(map(len, parts), default=0) * counts[-1] > _LONGEST:
        raise NoExamples
    return [text * count for count in counts for text in (parts if count else [""])][:_MOST_EXAMPLES]


def _joined(tree: Row) -> list[str]:
    """One part varies at a time, the others keep their first text; all together would be too many."""
    choices = [_texts(part) for part in tree.parts]
    if not all(choices):
        return []
    firsts = [texts[0] for texts in choices]
    if sum(map(len, firsts)) > _LONGEST:
        raise NoExamples
    found = ["".join(firsts)]
    for place, texts in enumerate(choices):
        before, after = "".join(firsts[:place]), "".join(firsts[place + 1 :])
        found += [before + text + after for text in texts[1:]]
    return found[:_MOST_EXAMPLES]
