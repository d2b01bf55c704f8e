"""Regular expressions put to the functions of stacks."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable

import numpy as np

from profiler.analysis.attribution.level_order import nearest_row
from profiler.analysis.attribution.logical_stacks import LogicalStacks
from profiler.errors import UsageError
from profiler.model.arrays import BoolColumn
from profiler.model.function import Function


def compile_pattern(pattern: str, option: str) -> re.Pattern[str]:
    """Raises ``UsageError`` that names the option when the text is no regular expression."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # "[[" is read as today's Python reads it
            return re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(f"{option} '{pattern}' is no regular expression: {error}") from None


def functions_with_name(functions: Iterable[Function], pattern: re.Pattern[str]) -> BoolColumn:
    """bool[functions]: the pattern is found in the canonical name or in the trait's."""
    return np.array([bool(pattern.search(f.key) or (f.trait_key and pattern.search(f.trait_key))) for f in functions], np.bool_)


def stacks_through(stacks: LogicalStacks, is_wanted: BoolColumn) -> BoolColumn:
    """bool[rows]: the stack that ends at the row has a row where ``is_wanted`` (bool[rows]) holds."""
    return nearest_row(stacks.levels, stacks.prefix, is_wanted) >= 0
