"""`slotscope rules check`: exit codes, lines, and what it says of a recording."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.cli.main import main

RECORDINGS = Path(__file__).resolve().parents[3] / "fixtures" / "epoch_demo"

MISTAKEN = """extends = ["common"]

[[rule]]
category = "all hashing"
function = 'sha'

[[rule]]
category = "SHA-256"
function = '^sha256::'

[[rule]]
category = "vectors"
function = ['^ok::', 'std::vector<int>']
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)  # the length of a path decides where lines break
    return Path("mine.toml")


def test_mistakes_are_exit_code_1_and_stand_with_their_lines(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(MISTAKEN)
    assert main(["rules", "check", "mine.toml"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("mine: ")
    assert lines[0].endswith(": 2 mistakes")
    assert lines[1] == "mine.toml:7: unreachable: mine.toml:3 takes all that it matches"
    assert lines[2].startswith("mine.toml:11: never matches: function 'std::vector<int>': no canonical name has this: ")
    assert "worth knowing" in lines


def test_what_is_only_worth_knowing_is_no_mistake(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("[[rule]]\ncategory = 'a'\nfunction = '^sha2::'\n\n[[rule]]\ncategory = 'b'\nfunction = 'digest_blocks$'\n")
    assert main(["rules", "check", "mine.toml"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "no mistakes found worth knowing mine.toml:5: overlap: sha2::sha256::x86::digest_blocks is 'a' by mine.toml:1" in out


@pytest.mark.parametrize("name", ["common", "ethereum", "native"])
def test_built_in_sets(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "check", name]) == 0
    assert "no mistakes found" in capsys.readouterr().out


def test_on_a_recording(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The example program has the namespaces sha256 and shuffling, and nothing called nowhere."""
    file.write_text(
        "[[rule]]\ncategory = 'SHA-256'\nfunction = '^sha256::'\n\n[[rule]]\ncategory = 'x'\nfunction = '^nowhere::'\n\n"
        "[[rule]]\ncategory = 'y'\nfunction = '::compress'\nunder = '^sha256::nothing'\n"
    )
    store = ["--store", str(RECORDINGS / "store")]
    arguments = [*store, "rules", "check", "mine.toml", "--on", "portable", "--debug-dir", str(RECORDINGS)]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert "mine.toml:5: unused: matches nothing in portable\n" in out
    assert "mine.toml:9: unused: takes nothing in portable: 'under' does not hold there" in out
    assert "mine.toml:1: unused" not in out
    assert "portable: functions that no rule names, with a line that would take each\n" in out
    heaviest = out[out.index("that no rule names") :].splitlines()[1]
    assert "%  shuffling::" in heaviest
    assert "function = '^shuffling::" in heaviest


def test_on_a_recording_whose_samples_all_have_a_category(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("[[rule]]\ncategory = 'everything'\ndso = '.'\n")
    arguments = ["--store", str(RECORDINGS / "store"), "rules", "check", "mine.toml", "--on", "portable"]
    assert main([*arguments, "--debug-dir", str(RECORDINGS)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "portable: every sample is in a category"


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["rules", "show", "--on", "last"], "belong to `rules check`"),
        (["rules", "check", "native", "--on", "nowhere"], "nowhere"),
        (["rules", "check", "native", "--on", "x", "--debug-dir", "missing"], "no such directory"),
    ],
)
def test_wrong_usage(arguments: list[str], part: str, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert part in capsys.readouterr().err
