"""TOML text to values; whatever keeps it from being read has a line and a reason."""

from __future__ import annotations

import re
import tomllib
from typing import Any

_PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


class TomlError(ValueError):
    """``line`` counts from 1; ``reason`` is one line."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason


def toml_document(text: str) -> dict[str, Any]:
    """The top-level table.  ``TomlError`` for text that is no TOML, and for what ``tomllib`` gives up in ways of its own:
    numbers of thousands of digits, and arrays or tables nested too deeply.  Their line is not known; it is the first one."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _PLACE.search(str(error))
        line = int(found[1]) if found and found[1] else max(1, len(text.splitlines()))
        raise TomlError(line, str(error)[: found.start()] if found else str(error)) from None
    except RecursionError:
        raise TomlError(1, "arrays or tables are nested too deeply") from None
    except ValueError:
        raise TomlError(1, "a number has too many digits") from None
