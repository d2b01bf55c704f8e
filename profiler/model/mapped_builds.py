"""Which builds of files processes had mapped, where the paths of these files do not tell."""

from __future__ import annotations

from collections.abc import Mapping

from profiler.model.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class MappedBuilds:
    """``build_ids``: by process ID and path as /proc/PID/maps shows it; ``UNREAD_BUILD`` of a file that could not be opened.
    ``has_one_root``: all the processes have the same root directory, that of the leading one."""

    build_ids: Mapping[tuple[int, str], bytes]
    has_one_root: bool
