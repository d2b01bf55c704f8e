"""Lines and JSON of what `doctor` found."""

from __future__ import annotations

import json

import jsonschema

from profiler.model.fitness import Fitness, FitnessCheck
from reports.fitness_report import fitness_json, is_fit, render_fitness
from reports.terminal_table import TerminalStyle
from support import report_schemas

HOSTILE = "a\x1b]0;x\x07\n\udcff\"'é"
CHECKS = (
    FitnessCheck("host", "perf", Fitness.OK, "version 6.1"),
    FitnessCheck("host", "permissions", Fitness.WARNING, "user code only", "`sudo sysctl kernel.perf_event_paranoid=1`"),
    FitnessCheck("/opt/lcli", "symbols", Fitness.MISSING, "stripped", "keep the file"),
)


def test_a_line_a_check_under_its_subject_and_the_verdict_last() -> None:
    assert render_fitness(CHECKS, TerminalStyle(100)) == (
        "host\n"
        "  ok       perf: version 6.1\n"
        "  warning  permissions: user code only\n"
        "           `sudo sysctl kernel.perf_event_paranoid=1`\n"
        "/opt/lcli\n"
        "  missing  symbols: stripped\n"
        "           keep the file\n"
        "fit for recording: 1 warning, 1 missing\n"
    )


def test_where_nothing_can_be_recorded() -> None:
    fatal = FitnessCheck("host", "perf", Fitness.MISSING, "perf is not installed", "install it", is_fatal=True)
    assert render_fitness((fatal,), TerminalStyle()).splitlines()[-1] == "recording cannot work here: 0 warnings, 1 missing"
    assert not is_fit((*CHECKS, fatal))
    assert json.loads(fitness_json((fatal,)))["fit"] is False


def test_colour_marks_the_verdict_only() -> None:
    lines = render_fitness(CHECKS, TerminalStyle(100, color=True)).splitlines()
    assert lines[1] == "  \x1b[32mok\x1b[0m       perf: version 6.1"
    assert lines[5] == "  \x1b[31mmissing\x1b[0m  symbols: stripped"


def test_hostile_names_are_printable() -> None:
    check = FitnessCheck(HOSTILE, HOSTILE, Fitness.WARNING, HOSTILE, HOSTILE)
    text = render_fitness((check,), TerminalStyle(40))
    assert "\x1b" not in text
    assert "\x07" not in text
    text.encode()
    document = json.loads(fitness_json((check,)))
    jsonschema.validate(document, report_schemas.DOCTOR)


def test_json() -> None:
    document = json.loads(fitness_json(CHECKS))
    jsonschema.validate(document, report_schemas.DOCTOR)
    assert document["fit"] is True
    assert document["checks"][2] == {
        "subject": "/opt/lcli",
        "check": "symbols",
        "verdict": "missing",
        "finding": "stripped",
        "advice": "keep the file",
    }
