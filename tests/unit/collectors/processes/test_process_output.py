"""The end of what a process printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from collectors.processes.process_output import OUTPUT_TAIL_BYTES, ending_text, last_line, output_tail, with_last_line


@pytest.mark.parametrize(
    ("text", "line"),
    [("", ""), ("\n \n", ""), ("one\ntwo\n\n", "two"), ("one", "one"), ("a" * 300, "a" * 200)],
)
def test_last_line(text: str, line: str) -> None:
    assert last_line(text) == line
    assert with_last_line("it failed", text) == (f"it failed: {line}" if line else "it failed")


def test_only_the_end_is_read(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"x" * OUTPUT_TAIL_BYTES + b"\nno such table \xff\n")
    assert output_tail(tmp_path / "out").endswith("\nno such table �\n")
    assert len(output_tail(tmp_path / "out").encode("utf-8", "replace")) <= OUTPUT_TAIL_BYTES + 2
    assert ending_text(3, tmp_path / "out") == "exit code 3; its last line: no such table �"
    (tmp_path / "out").write_bytes(b"")
    assert ending_text(-9, tmp_path / "out") == "killed by SIGKILL"
    assert ending_text(-63, tmp_path / "out") == "killed by signal 63"
