"""Facts about this host that make its measurements comparable with others or not."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from profiler.model.run import HostFacts

_CPU_INFO = Path("/proc/cpuinfo")


def host_facts() -> HostFacts:
    """The facts of the host this runs on; what cannot be read stays empty."""
    return HostFacts(
        hostname=platform.node(),
        kernel=platform.release(),
        architecture=platform.machine(),
        cpu=cpu_name(_read(_CPU_INFO)),
        cpu_count=os.cpu_count() or 0,
    )


def cpu_name(cpu_info: str) -> str:
    """The processor's name in the text of /proc/cpuinfo ("model name" on x86), "" when it has none."""
    for line in cpu_info.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return " ".join(value.split())
    return ""


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
