"""The text for a pull request, of an experiment whose recordings are kept: byte by byte as it was reviewed.

Only phases that hardly call the C library are looked at, so that no symbols of this machine take part.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from profiler.cli.main import main
from profiler.experiment.experiment_session import DOCUMENT, encode_record
from profiler.model.experiment import (
    BuildCost,
    Design,
    Direction,
    ExperimentRecord,
    InputFacts,
    MetricFacts,
    SectionSize,
    VariantFacts,
)
from profiler.store.store import open_store

PLANTED = Path(__file__).parent.parent / "fixtures/planted"
REVIEWED = PLANTED / "experiment.md"
PLAN = """[experiment]
name = "planted"
primary = "focus"
aa = true
"""


def variant(name: str, note: str, build_s: float, control_of: str = "") -> VariantFacts:
    cost = BuildCost(("make", name), round(build_s * 1e9), round(build_s * 1.9e9), 312_000_000)
    return VariantFacts(
        name,
        note=note,
        revision="v1.0-3-gabcdef0",
        binary=f"./{name}",
        size_bytes=473_664,
        sections=(SectionSize(".text", 61_440),),
        build=cost,
        control_of=control_of,
    )


RECORD = ExperimentRecord(
    name="planted",
    design=Design.INTERLEAVED,
    runs=10,
    seed=1,
    baseline="base",
    command=("{binary}", "--mode", "pure"),
    variants=(
        variant("base", "as released", 12.5),
        variant("again", "", 12.5, control_of="base"),
        variant("planted", "40 % of the SHA-256 blocks twice", 12.9),
        variant("planted-lto", "the same with LTO", 33.0),
    ),
    inputs=(InputFacts("seed", "/home/someone/seed.ssz", 1_234_567, "ab" * 32, "made by hand"),),
    metrics=(MetricFacts("focus", Direction.LOWER, 'regex: "phase": "(?:iterate|shuffle|sha256|epoch)"'),),
    primary="focus",
    phase="^phase::",
    plan_path="plan.toml",
    plan_text=PLAN,
)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    shutil.copytree(PLANTED / "store", tmp_path / "store")
    opened = open_store(tmp_path / "store", create=False)
    opened.put_document(opened.sessions()[0].name, DOCUMENT, encode_record(RECORD))
    return tmp_path / "store"


def test_the_page_is_as_reviewed(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--focus", "phase::(iterate|shuffle|sha256|epoch)", "--debug-dir", str(PLANTED), "--redact"]
    assert main(["--store", str(store), "experiment", "show", "--format", "markdown", *options]) == 0
    page = capsys.readouterr().out
    assert len(page) <= 60_000
    assert "/home/" not in page
    assert page == REVIEWED.read_text(encoding="utf-8")


def test_the_planted_function_may_be_all_of_the_change(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The change was made in SHA-256 alone: the interval of its share holds 100 %, and every other one's holds 0 %."""
    options = ["--focus", "phase::(iterate|shuffle|sha256|epoch)", "--debug-dir", str(PLANTED)]
    assert main(["--store", str(store), "experiment", "show", "--format", "json", *options]) == 0
    (condition,) = json.loads(capsys.readouterr().out)["conditions"]
    gains = {gain["candidate"]: {row["name"]: row for row in gain["rows"]} for gain in condition["gains"]}
    shares = {name: row["share_interval"] for name, row in gains["planted"].items()}
    low, high = shares.pop("SHA-256")
    assert low <= 1 <= high
    assert low > 0
    assert all(low <= 0 <= high for low, high in shares.values())
    # Nothing changed in the total that a share could be part of.
    assert {row["share"] for row in gains["again"].values()} == {None}
    # The program's own timers of these phases changed as the profile did; those of single phases are not held against it.
    for gain in condition["gains"]:
        assert [(found["name"], found["agreement"]) for found in gain["metrics"]] == [("focus", "agree")]
