"""Shared objects with much debug information: copies of a few compiled units, each with functions and types of its own."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_name("many_units.cpp")
NAMESPACE = b"unit_000"
# Variants of the source, as they follow one another; larger ones are rarer.
ORDER = (0, 1, 0, 2, 1, 0, 2, 3)
FLAGS = ("-std=c++17", "-O2", "-g", "-fPIC")


@dataclass(frozen=True)
class ManyUnits:
    """``units``: at most 1000; about 2 MB each."""

    name: str
    units: int

    def make(self, folder: Path) -> Path:
        """The file's path; made where it is missing, which takes a minute or two."""
        path = folder / f"{self.name}-{self.units}.so"
        if path.exists():
            return path
        objects = folder / f"{self.name}-objects"
        objects.mkdir(exist_ok=True)
        variants = [_compiled(folder, variant) for variant in range(len(set(ORDER)))]
        copies = []
        for number in range(self.units):
            copies.append(objects / f"{number:03}.o")
            # Of equal length, so that nothing in the file moves.
            copies[-1].write_bytes(variants[ORDER[number % len(ORDER)]].replace(NAMESPACE, f"unit_{number:03}".encode()))
        unfinished = path.with_suffix(".tmp")
        subprocess.run(["g++", "-shared", "-Wl,--build-id", "-o", str(unfinished), *map(str, copies)], check=True)
        for copy in copies:
            copy.unlink()
        objects.rmdir()
        unfinished.rename(path)
        return path


def _compiled(folder: Path, variant: int) -> bytes:
    path = folder / f"many-units-{variant}.o"
    if not path.exists():
        subprocess.run(["g++", *FLAGS, f"-DVARIANT={variant}", "-c", str(SOURCE), "-o", str(path)], check=True)
    return path.read_bytes()
