"""Dispatch, exit codes and the last line of defence of the console script."""

from __future__ import annotations

import argparse
import gc
import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from profiler.cli import main as main_module
from profiler.cli.context import CliContext
from profiler.cli.main import COMMANDS, command_parser, load_command, main
from profiler.errors import AnalysisError, FormatError, SlotscopeError, UsageError

# What the command line must not load before a command needs it.
HEAVY = {"numpy", "scipy", "pandas", "pyarrow", "elftools", "rich", "sqlite3", "zstandard"}


class Fake:
    """A command that does what the test says."""

    NAME = "rules"
    HELP = "Fake"

    def __init__(self, action: Callable[[CliContext], int]) -> None:
        self.action = action

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("action", nargs="?")

    def run(self, arguments: argparse.Namespace, context: CliContext) -> int:
        return self.action(context)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[CliContext], int]], None]:
    def install(action: Callable[[CliContext], int]) -> None:
        monkeypatch.setattr(main_module, "load_command", lambda name: Fake(action))

    return install


def raising(error: BaseException) -> Callable[[CliContext], int]:
    def action(context: CliContext) -> int:
        raise error

    return action


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (SlotscopeError("it broke"), 1, "slotscope: error: it broke"),
        (FormatError("a.data", "header is cut", 40), 1, "slotscope: error: a.data: byte 40: header is cut"),
        (AnalysisError("no sample matches"), 1, "slotscope: error: no sample matches"),
        (UsageError("no such variant"), 2, "slotscope: error: no such variant"),
        (KeyboardInterrupt(), 130, "slotscope: interrupted"),
        (PermissionError(13, "Permission denied", "x.data"), 1, "slotscope: error: x.data: Permission denied"),
        (UsageError("two\nlines \x1b[31m \udcff"), 2, "slotscope: error: two\\x0alines \\x1b[31m \\xff"),
    ],
)
def test_errors_are_one_line(
    error: BaseException,
    code: int,
    line: str,
    fake: Callable[[Callable[[CliContext], int]], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    fake(raising(error))
    assert main(["rules"]) == code
    shown = capsys.readouterr()
    assert shown.err == line + "\n"
    assert shown.out == ""


def test_a_name_without_end_does_not_fill_the_terminal(
    fake: Callable[[Callable[[CliContext], int]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    fake(raising(UsageError(f"r.toml:5: unknown key '{'k' * 50_000}' in [[rule]]")))
    assert main(["rules"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("slotscope: error: r.toml:5: unknown key 'kkk")
    assert line.endswith("kkk' in [[rule]]")
    assert "k...k" in line
    assert len(line) < 5000


def test_a_defect_is_one_line_with_its_place_and_a_code_of_its_own(
    fake: Callable[[Callable[[CliContext], int]], None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake(raising(ZeroDivisionError("by zero\nsecond")))
    assert main(["rules"]) == 70
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("slotscope: error: internal error at test_main.py:")
    assert "(ZeroDivisionError: by zero); please report it" in line
    monkeypatch.setenv("SLOTSCOPE_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        main(["rules"])


def test_the_command_decides_the_exit_code(fake: Callable[[Callable[[CliContext], int]], None]) -> None:
    fake(lambda context: 3)
    assert main(["rules"]) == 3


@pytest.mark.parametrize(
    ("arguments", "variable", "expected"),
    [
        (["rules"], None, ".slotscope"),
        (["rules"], "from-variable", "from-variable"),
        (["--store", "before", "rules"], "from-variable", "before"),
        (["--store=before", "rules"], None, "before"),
        (["rules", "--store", "after"], None, "after"),
    ],
)
def test_store_directory(
    arguments: list[str],
    variable: str | None,
    expected: str,
    fake: Callable[[Callable[[CliContext], int]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if variable:
        monkeypatch.setenv("SLOTSCOPE_STORE", variable)
    seen: list[Path] = []

    def action(context: CliContext) -> int:
        seen.append(context.store_directory)
        return 0

    fake(action)
    assert main(arguments) == 0
    assert seen == [Path(expected)]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ([], "no command given"),
        (["reprot"], "did you mean report?"),
        (["zzz"], "there are record, attach, report"),
        (["--nonsense"], "--nonsense"),
        (["report", "--nonsense"], "--nonsense"),
        (["report", "--by", "colour"], "--by"),
        (["report", "--phase", "("], "'(' is not a regular expression"),
        (["report", "--limit", "-1"], "--limit"),
        (["report", "--limit", "many"], "'many' is not a number of rows"),
        (["report", "a", "b"], "unrecognized arguments: b"),
        (["compare", "a"], "CANDIDATE"),
        (["compare", "a", "b", "--fail-on", "x"], "'x' is not [ROW:]PCT"),
        (["compare", "a", "b", "--margin", "0"], "'0' is not a percentage"),
        (["export", "a"], "-o"),
        (["export", "a", "-o", "x.png"], "supported are .speedscope.json, .folded"),
        (["export", "a", "b", "-o", "x.folded"], "a folded file holds one arm"),
        (["explain", "a"], "--function"),
        (["rules"], "action"),
        (["rules", "check"], "name the rule file"),
        (["rules", "check", "no-such-file.toml"], "no-such-file.toml"),
        (["rules", "show", "etherium"], "did you mean 'ethereum'"),
    ],
)
def test_wrong_usage_is_exit_code_2(
    arguments: list[str], part: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("slotscope: error: ")
    assert shown.err.count("\n") == 1
    assert part in shown.err
    assert list(tmp_path.iterdir()) == []


def test_a_rule_file_with_a_mistake(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('[[rule]]\ncategory = "x"\nfunction = "("\n')
    assert main(["rules", "check", str(file)]) == 2
    assert f"{file}:3" in capsys.readouterr().err


def test_rules_that_are_right(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the length of a path decides where lines break
    file = Path("mine.toml")
    file.write_text(
        '[[rule]]\ncategory = "copying"\ngroup = "memory"\nfunction = "^memmove$"\npassthrough = true\n'
        '[[rule]]\ntransparent = true\ndso = "libc"\n'
    )
    assert main(["rules", "check", "./mine.toml"]) == 0
    assert capsys.readouterr().out == "mine: 2 rules, 1 category, 1 transparent rule: no mistakes found\n"
    assert main(["rules", "show", "./mine.toml"]) == 0
    assert capsys.readouterr().out.splitlines()[2:] == [
        "./mine.toml:1  copying [group memory, pass-through]  function ~ ^memmove$",
        "./mine.toml:6  (transparent)  dso ~ libc",
    ]


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == "slotscope 0.1.0\n"


def command_names(module: str) -> str:
    return load_command(module).NAME


def test_overall_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    for name in COMMANDS:
        assert f"  {name:<8} {load_command(name).HELP}\n" in shown
        assert command_names(name) == name


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_explains_every_option(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    shown = capsys.readouterr().out
    for action in command_parser(name)._actions:
        assert action.help, f"{name}: {action.dest} has no help"
        assert all(option in shown for option in action.option_strings)


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)], ids=" ".join)
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "profiler.cli.main", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    loaded = {line.rsplit("|", 1)[-1].strip().split(".")[0] for line in done.stderr.splitlines() if "|" in line}
    assert "argparse" in loaded
    assert not loaded & HEAVY


def test_output_that_the_terminal_cannot_show_is_escaped() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    command = [sys.executable, "-m", "profiler.cli.main", "rules", "show", "größe"]
    done = subprocess.run(command, capture_output=True, check=False, env=environment, stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    assert b"gr\\xf6\\xdfe" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_reader_that_goes_away_is_no_error() -> None:
    command = [sys.executable, "-m", "profiler.cli.main", "rules", "show", "ethereum"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 141


def test_streams_that_cannot_be_configured_are_left_alone(
    monkeypatch: pytest.MonkeyPatch, fake: Callable[[Callable[[CliContext], int]], None]
) -> None:
    target = io.StringIO()
    monkeypatch.setattr(sys, "stdout", target)
    fake(lambda context: context.stdout.write("done") - 4)
    assert main(["rules"]) == 0
    assert target.getvalue() == "done"


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["rules", "--help"]])
def test_a_full_device_is_named(arguments: list[str]) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        command = [sys.executable, "-m", "profiler.cli.main", *arguments]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "slotscope: error: standard output: No space left on device\n"


def test_an_error_that_cannot_be_told_keeps_its_exit_code() -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        command = [sys.executable, "-m", "profiler.cli.main", "nonsense"]
        assert subprocess.run(command, stderr=full, check=False).returncode == 2


@pytest.mark.parametrize("limit", ["-1", "x", "1.5"])
def test_list_refuses_what_is_no_number_of_sessions(limit: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", f"--limit={limit}"]) == 2
    assert f"'{limit}' is not a number of sessions" in capsys.readouterr().err


def _threshold_in(name: str, fake: Callable[[Callable[[CliContext], int]], None]) -> int:
    """Objects that may be made while a command runs before garbage is looked for."""
    found: list[int] = []

    def action(_: CliContext) -> int:
        found.append(gc.get_threshold()[0])
        return 0

    fake(action)
    before = gc.get_threshold()
    try:
        assert main([name]) == 0
    finally:
        gc.set_threshold(*before)
    return found[0]


@pytest.mark.parametrize("name", ["record", "attach", "experiment", "agent", "serve"])
def test_commands_that_run_for_hours_collect_garbage(name: str, fake: Callable[[Callable[[CliContext], int]], None]) -> None:
    """As an interpreter does that was told nothing."""
    program = [sys.executable, "-I", "-c", "import gc; print(gc.get_threshold()[0])"]
    usual = int(subprocess.run(program, capture_output=True, check=True, text=True).stdout)
    assert _threshold_in(name, fake) == usual
    assert _threshold_in("rules", fake) > 100 * usual
