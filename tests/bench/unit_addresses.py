"""Addresses of code in a few compilation units of a file, the same in every run.

python tests/bench/unit_addresses.py FILE COUNT UNITS
"""

from __future__ import annotations

import random
import sys

import numpy as np

from profiler.model.dso import Dso, DsoKind
from symbolize.dwarf.debug_info import DebugInfo
from symbolize.dwarf.sections import read_sections
from symbolize.locate import Locator


def main(path: str, count: int, unit_limit: int) -> None:
    image = Locator().image(Dso(path, b"", DsoKind.FILE))
    sections = read_sections(image) if image is not None else None
    if sections is None:
        raise SystemExit(f"{path}: no debug information")
    units = DebugInfo(sections).empty_map().units
    owner, size = units.owner[:-1], np.diff(units.start).astype(np.int64)
    code_bytes = np.bincount(owner[owner >= 0], size[owner >= 0])
    large_enough = np.flatnonzero(code_bytes >= 2 * count / unit_limit).tolist()
    chance = random.Random(count)
    chosen_units = chance.sample(large_enough, min(unit_limit, len(large_enough)))
    chosen: list[int] = []
    for unit in chosen_units:
        places = [address for low, high in units.ranges_of(unit) for address in range(low, high)]
        chosen += chance.sample(places, min(-(-count // len(chosen_units)), len(places)))
    sys.stdout.writelines(f"0x{address:x}\n" for address in sorted(chosen)[:count])


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
