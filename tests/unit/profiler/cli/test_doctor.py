"""`slotscope doctor` as a user runs it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import jsonschema
import pytest

from profiler.cli.main import main
from support import report_schemas

PAGE = (Path(__file__).resolve().parents[4] / "docs" / "doctor.md").read_text(encoding="utf-8")


@pytest.mark.perf
@pytest.mark.beside
def test_host_binary_and_process(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    command = [
        "--store",
        str(tmp_path / "store"),
        "doctor",
        "--binary",
        "/bin/ls",
        "--pid",
        str(os.getpid()),
        "--format",
        "json",
    ]
    assert main(command) == 0
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, report_schemas.DOCTOR)
    subjects = [check["subject"] for check in document["checks"]]
    assert {"host", "/bin/ls"} <= set(subjects)
    assert any(subject.startswith(f"process {os.getpid()} (") for subject in subjects)
    by_name = {(check["subject"], check["check"]): check for check in document["checks"]}
    paranoid = Path("/proc/sys/kernel/perf_event_paranoid").read_text().strip()
    assert f"perf_event_paranoid is {paranoid}" in by_name["host", "permissions"]["finding"]
    assert by_name["/bin/ls", "call graph"]["finding"].startswith("`auto` takes ")
    assert not (tmp_path / "store").exists()


@pytest.mark.perf
@pytest.mark.beside
def test_the_text_has_every_check_that_the_page_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--binary", "/bin/ls"]) == 0
    text = capsys.readouterr().out
    shown = set(re.findall(r"^  (?:ok|warning|missing) +([^:]+):", text, re.MULTILINE))
    named = set(re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE))
    shown = {"shared object NAME" if name.startswith("shared object") else name for name in shown}
    assert shown <= named
    # Of processes and scripts, and what this machine may not have.
    assert named - shown <= {"container", "Python", "file", "clock", "buffers", "sampling rate"}
    assert text.splitlines()[-1].startswith("fit for recording: ")


def test_without_perf_the_host_is_unfit(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["doctor", "--format", "json"]) == 1
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, report_schemas.DOCTOR)
    assert document["fit"] is False
    assert document["checks"][0]["verdict"] == "missing"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--pid", "4194305"], "there is no process 4194305"),
        (["--binary", "/nowhere/x"], "/nowhere/x"),
    ],
)
def test_what_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    assert main(["doctor", *arguments]) in (1, 2)
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1
