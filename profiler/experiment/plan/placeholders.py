"""Words of a plan that stand for something else: {binary}, {input.NAME}, {build_dir}."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_PLACEHOLDER = re.compile(r"\{([a-z_]+(?:\.[^{}]*)?)\}")


def placeholders(words: Iterable[str]) -> list[str]:
    """Their names, in order."""
    return [match[1] for word in words for match in _PLACEHOLDER.finditer(word)]


def replaced(words: Iterable[str], values: Mapping[str, str]) -> tuple[str, ...]:
    """Placeholders without a value stay as they are: braces may mean something to the program."""
    return tuple(_PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), word) for word in words)
