"""What `doctor` found: a line for each check with its verdict and what to do, or JSON."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from profiler.model.fitness import Fitness, FitnessCheck
from reports.json_report import Json, document_text
from reports.plain_text import printable, valid_utf8
from reports.quantities import counted
from reports.terminal_table import TerminalStyle, wrap

SCHEMA = "slotscope.doctor/1"
_COLOURS = {Fitness.OK: "32", Fitness.WARNING: "33", Fitness.MISSING: "31"}
_VERDICT_CELLS = max(len(fitness) for fitness in Fitness)


def is_fit(checks: Sequence[FitnessCheck]) -> bool:
    """Whether recording can work at all."""
    return not any(check.is_fatal for check in checks)


def render_fitness(checks: Sequence[FitnessCheck], style: TerminalStyle) -> str:
    """The checks of each subject under its name, in their order; the last line is the verdict of all."""
    lines = []
    for subject, group in groupby(checks, lambda check: check.subject):
        lines.append(printable(subject))
        lines += [line for check in group for line in _lines(check, style)]
    return "\n".join([*lines, _summary(checks)]) + "\n"


def fitness_json(checks: Sequence[FitnessCheck]) -> str:
    """The same as a document; ``fit`` is false where recording cannot work at all."""
    listed: list[Json] = [
        {
            "subject": valid_utf8(check.subject),
            "check": valid_utf8(check.name),
            "verdict": check.fitness.value,
            "finding": valid_utf8(check.finding),
            "advice": valid_utf8(check.advice),
        }
        for check in checks
    ]
    return document_text({"schema": SCHEMA, "fit": is_fit(checks), "checks": listed})


def _lines(check: FitnessCheck, style: TerminalStyle) -> list[str]:
    verdict = check.fitness.value.ljust(_VERDICT_CELLS)
    line = wrap(f"{verdict}  {printable(check.name)}: {printable(check.finding)}", style, "  ")
    if style.color:
        line = line.replace(check.fitness.value, f"\x1b[{_COLOURS[check.fitness]}m{check.fitness.value}\x1b[0m", 1)
    advice = " " * (_VERDICT_CELLS + 4)
    return [line, *([wrap(printable(check.advice), style, advice)] if check.advice else [])]


def _summary(checks: Sequence[FitnessCheck]) -> str:
    warnings = sum(check.fitness is Fitness.WARNING for check in checks)
    missing = sum(check.fitness is Fitness.MISSING for check in checks)
    counts = f"{counted(warnings, 'warning')}, {missing} missing"
    return f"fit for recording: {counts}" if is_fit(checks) else f"recording cannot work here: {counts}"
