"""The console script: finds the command, runs it, and turns errors into one line and an exit code.

Exit codes: 0 done; 1 the work failed or the input is damaged; 2 wrong usage, or a limit of ``compare --fail-on`` that
cannot be checked; 3 such a limit was exceeded; 70 a fault of slotscope itself; 130 interrupted, 129 and 143 ended by SIGHUP
and SIGTERM; 141 the reader of the output went away.
"""

from __future__ import annotations

import argparse
import atexit
import errno
import gc
import importlib
import keyword
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Protocol, cast

from profiler.cli.context import STORE_VARIABLE, CliContext, default_store_directory
from profiler.cli.numpy_import import import_numpy
from profiler.cli.streams import accept_any_text, open_missing_streams, silence
from profiler.cli.termination import Terminated
from profiler.errors import AnalysisError, SlotscopeError, UsageError

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

    from profiler.model.costs import MissingSymbols

PROGRAM = "slotscope"
COMMANDS = (
    "record",
    "attach",
    "report",
    "compare",
    "experiment",
    "export",
    "explain",
    "rules",
    "list",
    "show",
    "rm",
    "prune",
    "import",
    "agent",
    "doctor",
    "serve",
    "token",
    "hosts",
    "demo",
)
_READING_COMMANDS = ("report", "compare", "export", "explain")
EXIT_BY_SIGNAL = 128
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141
EXIT_INTERNAL_ERROR = 70
TRACEBACK_VARIABLE = "SLOTSCOPE_TRACEBACK"
# Names out of a damaged file can have any length; both ends of a message stay.
_LONGEST_MESSAGE_CELLS = 4096
_WRITE_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
# Collections while modules are imported and tables are built find nothing: what a command makes, it keeps until it ends.
_GARBAGE_THRESHOLD = 1_000_000
# These run for hours: objects that refer to each other would stay, with all they hold, until there are a million.
_LASTING_COMMANDS = ("record", "attach", "experiment", "agent", "serve")
_USUAL_THRESHOLDS = gc.get_threshold()

_DESCRIPTION = (
    "Where the CPU time of a native program went, and which part of it a build\n"
    "change bought back. A SELECTOR names runs: `last`, a variant, SESSION/NAME,\n"
    "a file, a directory, a quoted glob, or LABEL=SELECTOR."
)


class CommandModule(Protocol):
    """What every module of a command offers."""

    NAME: str
    HELP: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, arguments: argparse.Namespace, context: CliContext) -> int: ...


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns its exit code."""
    gc.set_threshold(_GARBAGE_THRESHOLD)
    # The interpreter looks at every object several times when it ends; the operating system takes all of them back at once.
    atexit.register(gc.freeze)
    open_missing_streams()
    accept_any_text(sys.stdout)
    accept_any_text(sys.stderr)
    try:
        code = _dispatch(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
        return code
    except SlotscopeError as error:
        missing = _missing_lines(error.missing) if isinstance(error, AnalysisError) and error.missing else []
        return _fail(str(error), error.exit_code, missing)
    except Terminated as ended:
        return _fail(f"ended by {ended}", EXIT_BY_SIGNAL + ended.number)
    except KeyboardInterrupt:
        return _fail("interrupted", EXIT_INTERRUPTED)
    except BrokenPipeError:
        silence(sys.stdout)
        return EXIT_BROKEN_PIPE
    except OSError as error:
        return _fail(f"{_place_of(error)}{error.strerror or error}", 1)
    except MemoryError:
        return _fail("out of memory: look at fewer runs at a time, or at a phase of them", 1)
    except Exception as error:  # a user is owed one line whatever happens
        if os.environ.get(TRACEBACK_VARIABLE):
            raise
        return _fail(_internal_error(error), EXIT_INTERNAL_ERROR)


def _internal_error(error: Exception) -> str:
    """Names the place in our own code, so that a report of it is worth something."""
    import traceback

    frame = traceback.extract_tb(error.__traceback__)[-1]
    what = f"{type(error).__name__}: {error}".splitlines()[0]
    place = f"{Path(frame.filename).name}:{frame.lineno}"
    return f"internal error at {place} ({what}); please report it ({TRACEBACK_VARIABLE}=1 shows more)"


def load_command(name: str) -> CommandModule:
    """The module of a command, imported now."""
    module = f"{name}_" if keyword.iskeyword(name) else name
    return cast(CommandModule, importlib.import_module(f"profiler.cli.{module}"))


def command_parser(name: str) -> argparse.ArgumentParser:
    """The parser of one command."""
    command = load_command(name)
    parser = _Parser(prog=f"{PROGRAM} {name}", description=f"{command.HELP}.", allow_abbrev=False)
    command.add_arguments(parser)
    _add_store(parser, default=argparse.SUPPRESS)
    return parser


class _HelpShown(Exception):
    """``--help`` or ``--version`` was answered."""


class _Parser(argparse.ArgumentParser):
    """Raises instead of ending the process."""

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        # argparse's own drops what cannot be written.
        (file or sys.stderr).write(message)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see `{self.prog} --help`)")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        raise _HelpShown


class _Version(argparse.Action):
    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help="show the version and exit")

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(PROGRAM, version(PROGRAM))
        parser.exit()


class _OverallHelp(argparse.Action):
    """Only this needs every command's one-line help."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help="show this help and exit")

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        commands = "".join(f"  {name:<8} {load_command(name).HELP}\n" for name in COMMANDS)
        parser.epilog = f"commands:\n{commands}\n`{PROGRAM} COMMAND --help` shows the options of a command."
        parser.print_help()
        parser.exit()


def _dispatch(arguments: list[str]) -> int:
    try:
        overall = _overall_parser().parse_args(arguments)
        if overall.command is None:
            raise UsageError(f"no command given: one of {', '.join(COMMANDS)} (see `{PROGRAM} --help`)")
        _check_command(overall.command)
        parsed = command_parser(overall.command).parse_args(overall.arguments)
    except _HelpShown:
        return 0
    if overall.command in _READING_COMMANDS:
        import_numpy()
    if overall.command in _LASTING_COMMANDS:
        gc.set_threshold(*_USUAL_THRESHOLDS)
    store = getattr(parsed, "store", None) or overall.store or default_store_directory(os.environ)
    return load_command(overall.command).run(parsed, CliContext(Path(store), sys.stdout, sys.stderr))


def _overall_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog=PROGRAM,
        usage=f"{PROGRAM} [--store DIR] COMMAND ...",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        add_help=False,
    )
    parser.add_argument("-h", "--help", action=_OverallHelp)
    parser.add_argument("--version", action=_Version)
    _add_store(parser, default=None)
    parser.add_argument("command", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def _add_store(parser: argparse.ArgumentParser, default: str | None) -> None:
    parser.add_argument(
        "--store", metavar="DIR", default=default, help=f"where runs are kept (default: ${STORE_VARIABLE}, else ./.slotscope)"
    )


def _check_command(name: str) -> None:
    if name not in COMMANDS:
        import difflib

        nearest = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean {nearest[0]}?" if nearest else f"there are {', '.join(COMMANDS)}"
        raise UsageError(f"no command {name!r}: {hint}")


def _missing_lines(missing: Sequence[MissingSymbols]) -> list[str]:
    from reports.arm_lines import missing_lines

    return [f"{PROGRAM}: functions of these files are not known:", *missing_lines(missing)]


def _fail(message: str, code: int, lines_before: Sequence[str] = ()) -> int:
    from reports.plain_text import printable

    shown = printable(message)
    if len(shown) > _LONGEST_MESSAGE_CELLS:
        from reports.plain_text import shorten_middle

        shown = shorten_middle(shown, _LONGEST_MESSAGE_CELLS)
    try:
        for line in lines_before:
            print(line, file=sys.stderr)
        print(f"{PROGRAM}: {'' if code > EXIT_BY_SIGNAL else 'error: '}{shown}", file=sys.stderr)
    except OSError:
        silence(sys.stderr)
    return code


def _place_of(error: OSError) -> str:
    """The file that the error is about, with a colon behind it.  Whatever commands write elsewhere is named."""
    if error.filename:
        return f"{error.filename}: "
    if error.errno not in _WRITE_ERRORS:
        return ""
    silence(sys.stdout)
    return "standard output: "


if __name__ == "__main__":
    sys.exit(main())
