"""Small native programs for tests of ELF reading and unwinding, and the system tools' view of them."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from symbolize.elf.image import ElfImage, parse_image


def compile_program(directory: Path, name: str, source: str, options: Sequence[str] = ()) -> Path:
    """Compile C (``name.c``), C++ (``name.cpp``) or assembler (``name.s``) to ``directory/stem``; skips without a compiler."""
    source_path = directory / name
    source_path.write_text(source)
    program = source_path.with_suffix("")
    compiler = "g++" if source_path.suffix == ".cpp" else "gcc"
    try:
        subprocess.run([compiler, "-o", str(program), str(source_path), *options], check=True, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip(f"{compiler} is not installed")
    return program


def load_image(path: Path) -> ElfImage:
    return parse_image(path.read_bytes(), str(path))


def tool_output(*command: str) -> str:
    """Standard output of a binutils program; skips when it is not installed.

    readelf ends with 1 after mere warnings, so only a program that says nothing at all on either side counts as failed.
    """
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", env=environment, check=False)
    except FileNotFoundError:
        pytest.skip(f"{command[0]} is not installed")
    assert done.returncode == 0 or done.stdout, done.stderr
    return done.stdout


def system_library(name: str) -> Path:
    """A library of this system by its file name, from where the loader finds it."""
    for directory in ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/usr/lib"):
        path = Path(directory) / name
        if path.is_file():
            return path.resolve()
    pytest.skip(f"{name} is not on this system")
