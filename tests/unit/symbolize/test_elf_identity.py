"""How files are known again, against `readelf` and `sha256sum`."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from symbolize.elf.identity import identity_of, is_build
from symbolize.elf.image import ElfImage, parse_image


def built(directory: Path, *options: str) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    source, program = directory / "main.c", directory / "program"
    source.write_text("int main(void) { return 0; }")
    subprocess.run(["gcc", *options, str(source), "-o", str(program)], check=True)
    return program


def image_of(program: Path) -> ElfImage:
    return parse_image(program.read_bytes(), str(program))


def test_a_build_id_is_the_identity(tmp_path: Path) -> None:
    image = image_of(built(tmp_path, "-Wl,--build-id=0xc0ffee00"))
    assert identity_of(image) == bytes.fromhex("c0ffee00")
    assert is_build(image, bytes.fromhex("c0ffee00"))
    assert not is_build(image, bytes.fromhex("c0ffee01"))
    assert not is_build(image, b"")


def test_without_one_the_content_is(tmp_path: Path) -> None:
    program = built(tmp_path, "-Wl,--build-id=none")
    printed = subprocess.run(["sha256sum", str(program)], check=True, capture_output=True, text=True).stdout
    identity = bytes.fromhex(printed.split()[0])
    assert identity_of(image_of(program)) == identity
    assert is_build(image_of(program), identity)
    with program.open("ab") as stream:
        stream.write(b"\0")
    assert not is_build(image_of(program), identity)
    assert not is_build(image_of(program), b"")
