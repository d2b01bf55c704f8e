"""Whether a regular expression needs a closer look before names are searched for it."""

from __future__ import annotations

import re

# A group that is repeated without limit: only these can read one text in several ways.
_REPEATED_GROUP = re.compile(r"\)(?:[*+]|\{\d*,\})")


def may_explode(pattern: str) -> bool:
    """Whether a search for the pattern, which ``re.compile`` accepts, can take exponential time."""
    if not _REPEATED_GROUP.search(pattern):
        return False
    from profiler.rules.regex_cost import is_explosive
    from profiler.rules.regex_tree import parse_regex

    return is_explosive(parse_regex(pattern))
