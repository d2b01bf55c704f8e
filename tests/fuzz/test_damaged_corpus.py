"""Public files that are damaged, made to break readers, or odd, through the whole program."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import pytest
from fuzz import cases
from fuzz.sandbox import limited

from support import perf_data_writer as writer
from support.perf_data_writer import RecordingWriter, Sample

BINARIES = {
    "elf-fuzz": (),
    "elf-oddity": (pytest.mark.full,),
    "dwarf-yaml": (pytest.mark.full,),
    "elf-inline": (pytest.mark.full,),
    "elf-symtab": (pytest.mark.full,),
    "cfi": (pytest.mark.full,),
}
LARGEST_BINARY_BYTES = 20_000_000
ADDRESSES = 200

pytestmark = [pytest.mark.fuzz, pytest.mark.usefixtures("warm")]


@pytest.fixture(scope="module")
def warm(cache_home: Path) -> None:
    cases.warm_up()


def stored(corpus: Path, kind: str) -> list[Path]:
    with (corpus / "INDEX.tsv").open() as stream:
        rows = [row for row in csv.DictReader(stream, delimiter="\t") if row["kind"] == kind]
    return [corpus / row["stored"] for row in rows]


def fault(command: Sequence[str], directory: Path) -> str:
    outcome = limited(lambda: cases.slotscope(command), directory, cases.LIMITS)
    found = cases.fault_of(command, outcome)
    return f"{found} in slotscope {' '.join(command)}: {outcome.err[-2000:]}" if found else ""


def test_recordings(corpus: Path, tmp_path: Path) -> None:
    paths = stored(corpus, "perfdata-corrupt")
    assert len(paths) > 10
    commands = [("report", str(path), "--format", "json") for path in paths]
    commands += [("export", str(path), "-o", "-", "--format", "folded") for path in paths]
    assert [found for command in commands if (found := fault(command, tmp_path))] == []


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=marks) for kind, marks in BINARIES.items()])
def test_binaries(corpus: Path, tmp_path: Path, kind: str) -> None:
    """Their whole content is mapped, and sampled all over."""
    paths = [path for path in stored(corpus, kind) if path.is_file() and path.stat().st_size < LARGEST_BINARY_BYTES]
    assert paths
    faults = []
    for number, path in enumerate(paths):
        recording = tmp_path / f"{number}.data"
        recording.write_bytes(_sampled_all_over(path))
        command = ("report", str(recording), "--by", "line", "--format", "json", "--debug-dir", str(path.parent))
        if found := fault(command, tmp_path):
            faults.append(f"{path.relative_to(corpus)}: {found}")
    assert not faults, "\n".join(faults)


def _sampled_all_over(path: Path) -> bytes:
    size = max(path.stat().st_size, 1)
    content = RecordingWriter()
    content.comm(10, 10, b"program")
    content.mmap2(10, 0x10000000, size + 0xFFF & ~0xFFF, 0, b"/gone/" + path.name.encode())
    for row, offset in enumerate(range(0, size, max(1, size // ADDRESSES))):
        chain = (writer.USER_MARKER, 0x10000000 + offset, 0x10000000 + size - 1 - offset)
        content.sample(Sample(ip=0x10000000 + offset, time=row, chain=chain))
    return content.build()
