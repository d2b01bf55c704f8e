"""One case: a good input, a seed, and what came of it.

`PYTHONPATH=tests python -m fuzz.cases INPUT SEED [DIRECTORY]` repeats one; DIRECTORY keeps its files.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from fuzz.good_inputs import GoodInput, good_input
from fuzz.mutations import mutated
from fuzz.sandbox import Limits, Outcome, limited

LIMITS = Limits()
ERROR = "slotscope: error: "
LONGEST_LINE = 10_000
LARGEST_BYTES = 512 << 20


@dataclass(frozen=True)
class Case:
    """``fault``: "" or what is wrong with ``outcome``."""

    name: str
    seed: int
    command: Sequence[str]
    outcome: Outcome
    fault: str

    def __str__(self) -> str:
        again = f"PYTHONPATH=tests .venv/bin/python -m fuzz.cases {self.name} {self.seed}"
        lines = self.outcome.err.strip().splitlines()[-12:]
        return "\n    ".join([f"{self.fault} in `slotscope {' '.join(self.command)}`; again: {again}", *lines])


def run_case(name: str, seed: int, directory: Path) -> Case:
    """Damages the input as ``seed`` says, in ``directory``, which is empty, and uses it."""
    good = _input(name)
    rng = Random(f"{name} {seed}")
    target = rng.choice(good.targets)
    command = rng.choice(good.commands)
    damaged = good.wrap(mutated(rng, good.files[target], good.mutation))
    return use(name, seed, command, {**good.files, target: damaged}, directory)


def use(name: str, seed: int, command: Sequence[str], files: Mapping[str, bytes], directory: Path) -> Case:
    """Uses ``files``, damaged or not."""
    good = _input(name)
    write_files(files, directory)
    outcome = limited(lambda: _work(good, command, directory), directory, LIMITS)
    Path(f"/tmp/perf-{outcome.pid}.map").unlink(missing_ok=True)  # inputs with generated code have one
    return Case(name, seed, command, outcome, fault_of(command, outcome))


def _work(good: GoodInput, command: Sequence[str], directory: Path) -> int:
    good.finish(directory)
    if command == ("kallsyms",):
        return _kernel_symbols((directory / "kallsyms").read_bytes())
    return slotscope(command)


def slotscope(command: Sequence[str]) -> int:
    from profiler.cli.main import main

    return main(command)


def _kernel_symbols(text: bytes) -> int:
    import numpy as np

    from symbolize.kallsyms import parse_kallsyms

    symbols = parse_kallsyms(text)
    if symbols is not None:
        addresses = np.arange(2**64 - 2**31, 2**64 - 2**31 + 2**20, 4097, np.uint64)
        print(len([*symbols.names(addresses), *symbols.modules(addresses)]), symbols.address("function_0"))
    return 0


def fault_of(command: Sequence[str], outcome: Outcome) -> str:
    """An end that no input may have: "" for a result, and for an error in one line."""
    if outcome.code not in (0, 1, 2):
        return f"exit code {outcome.code}"
    if outcome.memory_bytes > LARGEST_BYTES or f"{ERROR}out of memory" in outcome.err:
        return f"{outcome.memory_bytes >> 20} MB of memory"
    lines = outcome.err.splitlines()
    if "Traceback" in outcome.err or any(len(line) > LONGEST_LINE for line in lines):
        return "no short message"
    errors = [line for line in lines if line.startswith(ERROR)]
    if outcome.code:
        return "" if len(errors) == 1 and lines[-1] == errors[0] else f"exit code {outcome.code} and {len(errors)} errors"
    if errors:
        return "exit code 0 after an error"
    return "" if _is_sound(command, outcome.out) else "output that cannot be used"


def _is_sound(command: Sequence[str], out: bytes) -> bool:
    """Programs can read it."""
    if "folded" in command:
        return all(re.search(rb" \d+$", line) for line in out.splitlines())
    if "json" in command or "speedscope" in command:
        json.loads(out, parse_constant=_not_json)
    return True


def _not_json(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


def warm_up() -> None:
    """Imports and compiles what the processes of the cases would import and compile again."""
    commands = {tuple(command) for name in ("folded", "catalog") for command in _input(name).commands if "rm" not in command}
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as name, Path(os.devnull).open("w") as nowhere:
        for good in (_input("folded"), _input("perf-file"), _input("catalog")):
            write_files(good.files, Path(name))
        os.chdir(name)
        try:
            with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
                for command in sorted({*commands, *map(tuple, _input("perf-file").commands)}):
                    slotscope(command)
        finally:
            os.chdir(here)


def _input(name: str) -> GoodInput:
    good = good_input(name)
    assert good is not None
    return good


def write_files(files: Mapping[str, bytes], directory: Path) -> None:
    for file, content in files.items():
        path = directory / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def main(arguments: Sequence[str], show: Callable[[str], object] = print) -> int:
    name, seed = arguments[0], int(arguments[1])
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(arguments[2] if len(arguments) > 2 else temporary)
        directory.mkdir(exist_ok=True)
        case = run_case(name, seed, directory)
        show(f"slotscope {' '.join(case.command)}\n{case.outcome.out[:2000].decode('utf-8', 'replace')}{case.outcome.err}")
        cpu_s, megabytes = case.outcome.cpu_s, case.outcome.memory_bytes >> 20
        show(f"code {case.outcome.code}, {cpu_s:.2f} s, {megabytes} MB; {case.fault or 'fine'}")
    return bool(case.fault)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
