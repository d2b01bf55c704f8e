"""Names of hosts and home directories taken out of a finished text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from profiler.model.costs import ArmCosts

# No part of a longer path, but perhaps right behind an option of one letter, as in -I/root/include.
_BEFORE = r"(?:(?<![\w.-])|(?<=[^\w]-[A-Za-z]))"
_HOME = re.compile(rf"{_BEFORE}/(?:home|Users)/[^/\s:;,\"'<>&|]+|{_BEFORE}/root(?=/)")


def redacted(text: str, hosts: Sequence[str], homes: Sequence[str]) -> str:
    """``hosts`` become host-1, host-2, ... in their order; home directories, those given and any other, become ~."""
    for home in sorted(homes, key=len, reverse=True):
        if home.strip("/"):
            text = re.sub(rf"{_BEFORE}{re.escape(home.rstrip('/'))}(?![\w.-])", "~", text)
    text = _HOME.sub("~", text)
    for number, host in enumerate(hosts, 1):
        if host:
            text = re.sub(rf"(?<![\w.-]){re.escape(host)}(?![\w-])", f"host-{number}", text)
    return text


def host_names(arms: Iterable[ArmCosts]) -> tuple[str, ...]:
    """Of all runs, each once."""
    names = (info.host.hostname for arm in arms for info in (*arm.infos, *arm.plain, *arm.failed))
    return tuple(dict.fromkeys(name for name in names if name))
